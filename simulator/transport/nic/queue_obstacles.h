// SPDX-License-Identifier: GPL-2.0-only
// States in words what queue pairs wait for. These functions read the records of queue pairs, and
// change nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/queue_paths.h"
#include "simulator/transport/nic/queue_state.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Refers to the records of all queue pairs and the fabric that they cross.
struct QueueTables {
  const FabricGraph& graph;
  const FabricNetwork& network;
  std::span<const SendQueue> senders;       // by QueueId
  std::span<const ReceiveQueue> receivers;  // the same
};

// Returns whether posted data or grants of a queue pair are unacknowledged.
bool IsUnderWay(const QueueTables& tables, FlowId queue_pair);
// Returns what is in the way of a queue pair's unacknowledged packets and of their ACKs, such as
// "leaf3>server1/nic3 is down".
std::vector<std::string> ObstaclesOf(const QueueTables& tables, FlowId queue_pair,
                                     const PairEnds& ends);
// Returns the queue of a pair that has retransmitted its oldest packet most often, or nullopt if
// none waits that has.
std::optional<QueueId> MostTriedQueue(const QueueTables& tables, FlowId queue_pair);

// These functions are the parts of ObstaclesOf(). The first adds the links of a path that are down
// or paused, unless they are in the list. The second names the links whose failures can be the
// cause if there is no route between the ends.
void AddObstacles(const QueueTables& tables, PathRef path, std::vector<std::string>& obstacles);
std::string WhyNoRoute(const QueueTables& tables, const PairEnds& ends);

}  // namespace railyard
