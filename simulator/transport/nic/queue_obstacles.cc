// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/queue_obstacles.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railyard {
namespace {

constexpr size_t kNamedLinksMax = 4;

bool IsWaiting(const SendQueue& queue) { return queue.posted_end != queue.unacknowledged; }

}  // namespace

bool IsUnderWay(const QueueTables& tables, FlowId queue_pair) {
  return IsWaiting(tables.senders[DataQueueOf(queue_pair)]) ||
         IsWaiting(tables.senders[GrantQueueOf(queue_pair)]);
}

void AddObstacles(const QueueTables& tables, PathRef path, std::vector<std::string>& obstacles) {
  const auto add = [&obstacles](const std::string& text) {
    if (std::find(obstacles.begin(), obstacles.end(), text) == obstacles.end()) {
      obstacles.push_back(text);
    }
  };
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    const LinkId link = tables.network.paths().LinkOf(path, hop);
    if (!tables.network.IsLinkUp(link)) {
      add(tables.graph.link(link).name + " is down");
    } else if (tables.network.IsPaused(link)) {
      add(tables.graph.link(link).name + " is paused");
    }
  }
}

// Routes avoid failed links. If no route is left, a failed link at one of the ends is the cause,
// or, if there is none, any failed link between them.
std::string WhyNoRoute(const QueueTables& tables, const PairEnds& ends) {
  const FabricGraph& graph = tables.graph;
  const auto is_end = [&](DeviceId device) {
    return device == ends.source_nic || device == ends.destination_nic;
  };
  std::vector<std::string> at_ends;
  std::vector<std::string> elsewhere;
  for (LinkId link{0}; link < graph.link_count(); ++link) {
    if (tables.network.IsLinkUp(link)) continue;
    auto& names =
        is_end(graph.link_source(link)) || is_end(graph.link_target(link)) ? at_ends : elsewhere;
    names.push_back(graph.link(link).name + " is down");
  }
  std::vector<std::string>& names = at_ends.empty() ? elsewhere : at_ends;
  if (names.size() > kNamedLinksMax) {
    names.resize(kNamedLinksMax);
    names.emplace_back("and others");
  }
  if (names.empty()) return "there is no route yet";
  return fmt::format("there is no route: {}", fmt::join(names, ", "));
}

std::vector<std::string> ObstaclesOf(const QueueTables& tables, FlowId queue_pair,
                                     const PairEnds& ends) {
  std::vector<std::string> obstacles;
  bool has_route = true;
  for (const QueueId id : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    const SendQueue& sender = tables.senders[id];
    const ReceiveQueue& receiver = tables.receivers[id];
    if (!IsWaiting(sender)) continue;
    AddObstacles(tables, sender.path(), obstacles);
    AddObstacles(tables, receiver.ack_path(), obstacles);
    has_route &= sender.hop_count != 0 && receiver.ack_hop_count != 0;
  }
  if (!has_route) obstacles.push_back(WhyNoRoute(tables, ends));
  return obstacles;
}

std::optional<QueueId> MostTriedQueue(const QueueTables& tables, FlowId queue_pair) {
  std::optional<QueueId> most_tried;
  uint32_t retries = 0;
  for (const QueueId id : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    const SendQueue& queue = tables.senders[id];
    if (!IsWaiting(queue) || queue.retries <= retries) continue;
    most_tried = id;
    retries = queue.retries;
  }
  return most_tried;
}

}  // namespace railyard
