// SPDX-License-Identifier: GPL-2.0-only
// Finds an order of all operations of a job in which each comes after its dependencies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/dependencies/dependency_graph.h"

namespace railyard {

// Holds the pairs of Sends and Recvs that form a message, and those without a partner of the same
// size.
struct MatchedMessages {
  // By rank and operation: the partner of a Send or Recv, if it has one.
  std::vector<std::vector<std::optional<GraphPlace>>> partner;
  std::vector<GraphPlace> without_partner;  // the peer has no call left for it
  std::vector<GraphPlace> sizes_differ;     // each Send is followed by its Recv
};
// Matches the k-th Send from one rank to another with a tag with the k-th Recv, each counted in its
// rank's order of operations.
MatchedMessages MatchMessages(const DependencyGraph& graph);

enum class SendsAre : uint8_t {
  kSynchronous,  // they end when their message has been received, and dependents wait for it
  kEager,        // dependents do not wait for their end
};

// States which order is preferred: that of the ranks' own numbers keeps programs as they are
// written; in the other one the ends of messages are adjacent, so that operations may also wait for
// any before them.
enum class OrderIs : uint8_t { kByNumber, kByMessage };

struct JobOrder {
  std::vector<GraphPlace> order;       // every operation once
  std::optional<GraphPlace> in_cycle;  // an operation that waits for itself; then `order` is empty
};
// Returns the operations rank by rank in the order of their numbers, if that is preferred and three
// conditions hold: no
// operation precedes one of its dependencies, both ends of every pair of ranks have their messages
// of a tag in the same order, and executing the messages of a pair one after another causes no
// cyclic wait. Otherwise returns one order of the whole job in which the Send and Recv of a message
// are adjacent.
JobOrder OrderJob(const DependencyGraph& graph, const MatchedMessages& messages, SendsAre sends,
                  OrderIs preferred = OrderIs::kByNumber);

}  // namespace railyard
