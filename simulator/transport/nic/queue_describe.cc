// SPDX-License-Identifier: GPL-2.0-only
// Says in words what queue pairs wait for.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/transport/nic/queue_transport.h"

namespace railyard {
namespace {

constexpr size_t kNamedLinksMax = 4;

}  // namespace

std::string QueueTransport::NamesOf(FlowId queue_pair) const {
  return railyard::NamesOf(graph_, queue_pairs_[queue_pair]);
}

FlowStatus QueueTransport::StatusOf(FlowId queue_pair) const {
  return {.is_under_way = IsUnderWay(queue_pair),
          .description = Describe(queue_pair),
          .obstacles = ObstaclesOf(queue_pair)};
}

bool QueueTransport::IsUnderWay(FlowId queue_pair) const {
  const auto waits = [this](QueueId queue_id) {
    const SendQueue& queue = send_queues_[queue_id];
    return queue.posted_end != queue.unacknowledged;
  };
  return waits(DataQueueOf(queue_pair)) || waits(GrantQueueOf(queue_pair));
}

std::optional<PlacedMessage> QueueTransport::MessageOf(QueueId queue, uint32_t sequence) const {
  if (const auto completed = history_->Find(queue, sequence)) return completed;
  PlacedMessage placed = history_->Next(queue);
  const MessageRing& messages = backlogs_[queue].messages;
  for (uint32_t position = messages.first(); position != messages.end(); ++position) {
    placed.message = messages.at(position);
    if (SequenceDistance(sequence, placed.message.first_sequence) < 0) break;
    if (SequenceDistance(sequence, placed.message.end_sequence) < 0) return placed;
    ++placed.number;
    placed.offset_bytes += placed.message.bytes;
  }
  return std::nullopt;
}

std::optional<SendLimits> QueueTransport::LimitsNow(FlowId queue_pair) const {
  const SendQueue& queue = send_queues_[DataQueueOf(queue_pair)];
  if (queue.posted_end == queue.unacknowledged) return std::nullopt;
  const NicKind& kind = kinds_[queue.nic_kind];
  SendLimits limits = kind.control->limits(queue_pair);
  limits.window_bytes = std::min(limits.window_bytes, uint64_t{kind.settings.window_bytes});
  if (queue.port != SendQueue::kNone) {
    limits.rate_bps = std::min(limits.rate_bps, network_.RateBps(ports_[queue.port].wire));
  }
  return limits;
}

void QueueTransport::AddObstacles(PathRef path, std::vector<std::string>& obstacles) const {
  const auto add = [&obstacles](const std::string& text) {
    if (std::find(obstacles.begin(), obstacles.end(), text) == obstacles.end()) {
      obstacles.push_back(text);
    }
  };
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    const LinkId link = network_.paths().LinkOf(path, hop);
    if (!network_.IsLinkUp(link)) {
      add(graph_.link(link).name + " is down");
    } else if (network_.IsPaused(link)) {
      add(graph_.link(link).name + " is paused");
    }
  }
}

// Routes avoid failed links. If no route is left, a failed link at one of the ends is the cause,
// or, if there is none, any failed link between them.
std::string QueueTransport::WhyNoRoute(const QueuePair& pair) const {
  std::vector<std::string> at_ends;
  std::vector<std::string> elsewhere;
  for (LinkId link{0}; link < graph_.link_count(); ++link) {
    if (network_.IsLinkUp(link)) continue;
    const auto is_end = [&](DeviceId device) {
      return device == pair.source_nic || device == pair.destination_nic;
    };
    auto& names =
        is_end(graph_.link_source(link)) || is_end(graph_.link_target(link)) ? at_ends : elsewhere;
    names.push_back(graph_.link(link).name + " is down");
  }
  std::vector<std::string>& names = at_ends.empty() ? elsewhere : at_ends;
  if (names.size() > kNamedLinksMax) {
    names.resize(kNamedLinksMax);
    names.emplace_back("and others");
  }
  if (names.empty()) return "there is no route yet";
  return fmt::format("there is no route: {}", fmt::join(names, ", "));
}

std::vector<std::string> QueueTransport::ObstaclesOf(FlowId queue_pair) const {
  std::vector<std::string> obstacles;
  bool has_route = true;
  QueueId most_tried = DataQueueOf(queue_pair);
  for (const QueueId id : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    const SendQueue& queue = send_queues_[id];
    if (queue.posted_end == queue.unacknowledged) continue;
    AddObstacles(queue.path(), obstacles);
    AddObstacles(receive_queues_[id].ack_path(), obstacles);
    has_route &= queue.hop_count != 0 && receive_queues_[id].ack_hop_count != 0;
    if (queue.retries > send_queues_[most_tried].retries) most_tried = id;
  }
  if (!has_route) obstacles.push_back(WhyNoRoute(queue_pairs_[queue_pair]));
  const SendQueue& tried = send_queues_[most_tried];
  if (obstacles.empty() && tried.retries > 0 && tried.posted_end != tried.unacknowledged) {
    obstacles.push_back(DescribeRetries(most_tried));
  }
  return obstacles;
}

}  // namespace railyard
