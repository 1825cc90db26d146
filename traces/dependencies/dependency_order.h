// SPDX-License-Identifier: GPL-2.0-only
// An order of all operations of a job in which everything stands behind what it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/dependencies/dependency_graph.h"

namespace railyard {

// The Sends and Recvs that form a message, and those without a partner of the same size.
struct MatchedMessages {
  // By rank and operation: its partner, for a Send or Recv that has one.
  std::vector<std::vector<std::optional<GraphPlace>>> partner;
  std::vector<GraphPlace> without_partner;  // no call of the peer is left for it
  std::vector<GraphPlace> sizes_differ;     // Send and Recv, one after the other
};
// The k-th Send from one rank to another with a tag belongs to the k-th Recv, each counted in its
// rank's order of operations.
MatchedMessages MatchMessages(const DependencyGraph& graph);

enum class SendsAre : uint8_t {
  kSynchronous,  // done when their message has been received: what waits for them waits for that
  kEager,        // done at once for whatever waits for them
};

struct JobOrder {
  std::vector<GraphPlace> order;       // every operation once
  std::optional<GraphPlace> in_cycle;  // an operation that waits for itself; then `order` is empty
};
// Rank by rank in the order of their numbers, where nothing stands before what it waits for, both
// ends of every pair of ranks have their messages of a tag in one order, and the job does not wait
// for itself if messages of a pair follow one another. Else in an order of the whole job, Send and
// Recv of a message together.
JobOrder OrderJob(const DependencyGraph& graph, const MatchedMessages& messages, SendsAre sends);

}  // namespace railyard
