// SPDX-License-Identifier: GPL-2.0-only
// Chooses one of a switch's equal-cost links for each packet: by flowlets, by the shortest queue,
// or by spraying. Only the data of queue pairs is balanced. ACKs, clear-to-sends and CNPs keep the
// path of their queue pair's hash, because NICs mark only writes for adaptive routing.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/tables/fabric_settings.h"
#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class LoadBalancer {
 public:
  struct Settings {
    LoadBalancing policy = LoadBalancing::kEcmp;
    int64_t flowlet_gap_ps = 0;
    uint64_t seed = 0;
  };
  // Returns the time that the port of a link takes to send all its packets.
  using BacklogPs = std::function<int64_t(LinkId)>;

  LoadBalancer() = default;
  // `routing` must outlive this object. ForgetRoutes() must be called when its links change.
  LoadBalancer(const EcmpRouting& routing, const Settings& settings, BacklogPs backlog_ps);
  void ForgetRoutes() { next_hops_.clear(); }

  // Returns the link from `at` towards `nic` for the packet, which has `hops` links left. Returns
  // LinkId::kNone if no shortest path has that length, because the fabric has changed since the
  // packet was sent.
  LinkId Choose(DeviceId at, DeviceId nic, uint32_t hops, const Packet& packet, int64_t now_ps);

 private:
  struct Flowlet {
    int64_t last_ps = 0;
    LinkId link = LinkId::kNone;
  };

  const NextHops& NextHopsOf(DeviceId at, DeviceId nic);
  LinkId ChooseLeastQueued(const std::vector<LinkId>& links, uint64_t draw) const;
  LinkId ChooseFlowlet(DeviceId at, const std::vector<LinkId>& links, const Packet& packet,
                       uint64_t draw, int64_t now_ps);

  const EcmpRouting* routing_ = nullptr;
  Settings settings_;
  BacklogPs backlog_ps_;
  std::unordered_map<uint64_t, NextHops> next_hops_;  // by switch and NIC
  std::unordered_map<uint64_t, Flowlet> flowlets_;    // by switch and flow
};

}  // namespace railyard
