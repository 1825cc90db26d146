// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/proxies/network_proxies.h"

namespace railyard {

// Records which lane has which side of a connection. A side has one owner at a time: of two
// collectives that use a connection the second one's lane waits until the first one's is done.
class LaneClaims {
 public:
  // All references must outlive this.
  LaneClaims(ConnectionTable& table, LaneTable& lanes, LaneWakes& wakes, NetworkProxies& proxies)
      : table_(table), lanes_(lanes), wakes_(wakes), proxies_(proxies) {}

  // Makes the lane the owner of the sides of all connections it uses, which are opened if need be;
  // grants what it is to receive over the network. False: another lane has one still; the lane
  // keeps those it has and is woken when that one is released.
  bool Claim(LaneIndex lane);
  // The lane is done: its sides are free, and who waits for them is woken.
  void Release(LaneIndex lane);
  // The connections are closed: nobody waits for them any more.
  void Forget(std::span<const ConnectionId> closed);

 private:
  bool ClaimSide(LaneIndex lane, ConnectionId connection, bool is_send);
  bool ClaimReceives(LaneIndex lane, const LanePeers& peers);
  bool ClaimSends(LaneIndex lane, const LanePeers& peers);
  void ReleaseSide(ConnectionId connection, uint32_t MessageSlots::*owner);

  ConnectionTable& table_;
  LaneTable& lanes_;
  LaneWakes& wakes_;
  NetworkProxies& proxies_;
  // Lanes that found a connection's side taken, by connection.
  std::unordered_map<ConnectionId, std::vector<LaneIndex>> claimants_;
};

}  // namespace railyard
