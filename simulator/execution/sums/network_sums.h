// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// Sums that the network's switches make (SHARP): what a rank gives to its aggregation tree and gets
// from it. A rank has one connection to a tree, which it joins when it first sends.
class NetworkSums {
 public:
  // Both references must outlive this.
  NetworkSums(AggregationTransport& transport, ConnectionTable& table)
      : transport_(transport), table_(table) {}

  // What a step of a rank has the switches do; a plain reduction where it neither gathers nor
  // scatters.
  static StepAggregation AggregationOf(const LanePeers& listed, uint32_t rank, const Step& step);

  // Puts a slice into the next slot of the rank's connection and counts it. Its slot is free, so
  // there is room for the sum as well: the receive is posted with the operand
  // (src/transport/coll_net.cc). `wire_bytes`: its payload with the protocol's flags.
  void Stage(const LaneId& lane, const LaneConnections& peers, ConnectionId connection,
             uint32_t slice_bytes, uint64_t wire_bytes);
  // The proxy posts what is staged in a slot.
  void Post(ConnectionId connection, uint32_t slot);
  // Counts, and returns, what the rank gets of the slice at hand.
  uint32_t CountReceived(const LaneConnections& peers, ConnectionId connection,
                         uint32_t slice_bytes);

 private:
  void JoinTree(const LaneId& lane, const LanePeers& listed, ConnectionId connection);
  AggregatedBytes& CountersOf(const LaneConnections& peers, ConnectionId connection);

  AggregationTransport& transport_;
  ConnectionTable& table_;
};

}  // namespace railyard
