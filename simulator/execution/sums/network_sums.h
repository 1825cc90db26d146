// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// Handles the ranks' part in the sums that the network's switches compute (SHARP): ranks send
// operands to their aggregation tree and receive results. A rank has one connection to a tree and
// joins the tree with its first send.
class NetworkSums {
 public:
  // Both references must outlive this.
  NetworkSums(AggregationTransport& transport, ConnectionTable& table)
      : transport_(transport), table_(table) {}

  // Puts a slice into the slot of the rank's connection that was posted last, and counts
  // its bytes. The slot was free, so the sum has room as well, because the receive is posted with
  // it (src/transport/coll_net.cc). `wire_bytes` is the slice's payload with the protocol's flags.
  void Stage(const LaneId& lane, const LaneConnections& peers, ConnectionId connection,
             uint32_t slice_bytes, uint64_t wire_bytes);
  // Posts the operand that is staged in a slot; called by the proxy.
  void Post(ConnectionId connection, uint32_t slot);
  // Returns the bytes that the rank receives of the current slice, and counts them.
  uint32_t CountReceived(const LaneConnections& peers, ConnectionId connection,
                         uint32_t slice_bytes);

 private:
  void JoinTree(const LaneId& lane, const LanePeers& listed, ConnectionId connection);
  AggregatedBytes& CountersOf(const LaneConnections& peers, ConnectionId connection);

  AggregationTransport& transport_;
  ConnectionTable& table_;
};

}  // namespace railyard
