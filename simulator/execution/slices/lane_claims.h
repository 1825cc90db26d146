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

// Records which lane owns which side of a connection. A side has one owner at a time: if two
// collectives use a connection, the lane of the second waits until the first one's lane has
// finished.
class LaneClaims {
 public:
  // All references must outlive this.
  LaneClaims(ConnectionTable& table, LaneTable& lanes, LaneWakes& wakes, NetworkProxies& proxies)
      : table_(table), lanes_(lanes), wakes_(wakes), proxies_(proxies) {}

  // Makes the lane the owner of its sides of all connections it uses, opens those that are not
  // open, and grants the messages it is to receive over the network. Returns false if another lane
  // still owns a side; the lane then keeps the sides it has and is woken when that side is
  // released.
  bool Claim(LaneIndex lane);
  // Releases the sides of a lane that has finished, and wakes the lanes that wait for them.
  void Release(LaneIndex lane);
  // Removes closed connections, for which no lane waits any more.
  void Forget(std::span<const ConnectionId> closed);

 private:
  bool ClaimSide(LaneIndex lane, ConnectionId connection, bool is_send);
  bool ClaimReceives(LaneIndex lane, const LanePeers& peers);
  bool ClaimSends(LaneIndex lane, const LanePeers& peers);
  void ReleaseSide(ConnectionId connection, LaneIndex MessageSlots::*owner);

  ConnectionTable& table_;
  LaneTable& lanes_;
  LaneWakes& wakes_;
  NetworkProxies& proxies_;
  // The lanes that wait for a side of a connection, by connection.
  std::unordered_map<ConnectionId, std::vector<LaneIndex>> claimants_;
};

}  // namespace railyard
