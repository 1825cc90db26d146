// SPDX-License-Identifier: GPL-2.0-only
// Replays a small job on packets, for tests of the replay and of what records it: rank r is GPU r
// of servers of eight. Nothing is replayed from the cache unless a test asks for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/object.h>
#include <ns3/simulator.h>

#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/engine/replay_engine.h"
#include "tests/replay/small_replay.h"
#include "topologies/routing/routing.h"

namespace railyard::testing {

class ReplayFixture : public ::testing::Test, public ReplayObserver {
 protected:
  explicit ReplayFixture(uint32_t servers = 1)
      : graph_(Servers(servers)), network_(ns3::CreateObject<FabricNetwork>()) {
    network_->Build(graph_, engine());
    routing_.emplace(graph_, 1);
    network_->SetRouting(*routing_);
  }
  ~ReplayFixture() override { ns3::Simulator::Destroy(); }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }
  ReplayEngine& Build(Job job, ReplayCacheMode cache = ReplayCacheMode::kOff) {
    return Build(std::move(job), ReplayRules{.cache = cache});
  }
  ReplayEngine& Build(Job job, const ReplayRules& rules) {
    job_ = std::move(job);
    return replay_.emplace(graph_, *network_, *routing_, job_, rules, *this);
  }
  void Run() {
    replay_->Start();
    ns3::Simulator::Run();
  }
  template <typename Action>
  static void At(int64_t time_ps, Action action) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps)), std::move(action));
  }
  const CollectiveTimes& TimesOf(uint32_t collective) const {
    return replay_->ledger().times()[collective];
  }
  // Returns programs of all ranks, which do nothing yet.
  Programs Idle() const { return Programs(graph_.gpus().size()); }
  // Returns one of a GPU's links to an NVSwitch.
  LinkId NvlinkFrom(uint32_t gpu) const {
    for (LinkId id{0}; id < graph_.link_count(); ++id) {
      if (graph_.link(id).tier == Tier::kNvlink && graph_.link_source(id) == graph_.gpus()[gpu]) {
        return id;
      }
    }
    ADD_FAILURE() << "GPU " << gpu << " has no NVLink";
    return LinkId{0};
  }

  void OnPacketLost(ConnectionId /*connection*/, const FlowLoss& /*loss*/) override {}
  void OnPacketRepeated(ConnectionId /*connection*/, uint32_t /*payload_bytes*/) override {}
  void OnRetransmission(ConnectionId /*connection*/) override {}
  void OnLossRecovered(ConnectionId /*connection*/) override {}
  void OnRankError(GlobalRank rank, const std::string& why) override {
    ADD_FAILURE() << "rank " << rank << ": " << why;
  }

  FabricGraph graph_;
  ns3::Ptr<FabricNetwork> network_;
  std::optional<EcmpRouting> routing_;
  Job job_;
  std::optional<ReplayEngine> replay_;
};

// Returns one half of a transfer of so many bytes. The calls of an ncclGroup have its number.
inline TraceOperation Half(CollectiveKind kind, uint32_t peer, uint64_t bytes, uint32_t group = 0,
                           int64_t gap_ps = 0) {
  return {.kind = kind,
          .count = bytes,
          .datatype = Datatype::kInt8,
          .peer = peer,
          .group = group,
          .compute_before_ps = gap_ps};
}
inline TraceOperation Send(uint32_t peer, uint64_t bytes, uint32_t group = 0, int64_t gap_ps = 0) {
  return Half(CollectiveKind::kSend, peer, bytes, group, gap_ps);
}
inline TraceOperation Recv(uint32_t peer, uint64_t bytes, uint32_t group = 0, int64_t gap_ps = 0) {
  return Half(CollectiveKind::kRecv, peer, bytes, group, gap_ps);
}

}  // namespace railyard::testing
