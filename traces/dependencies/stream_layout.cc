// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/stream_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace railyard {

uint32_t StreamLayout::Add(TraceOperation operation, std::vector<uint32_t> waits_for) {
  std::vector<uint32_t> after = precedence_.Latest(std::move(waits_for));
  const auto before =
      std::ranges::find_if(after, [&](uint32_t other) { return precedence_.IsLastOfLane(other); });
  if (before != after.end()) {
    operation.stream = precedence_.LaneOf(*before);
    after.erase(before);
  } else {
    const std::optional<uint32_t> behind = precedence_.LaneBehind(after);
    operation.stream = behind ? *behind : NewStream();
  }
  return Append(operation, std::move(after));
}

void StreamLayout::AddBeside(uint32_t lane, TraceOperation operation,
                             std::vector<uint32_t> waits_for) {
  const auto [at, is_new] = stream_of_lane_.try_emplace(lane, 0);
  if (is_new) at->second = NewStream();
  operation.stream = at->second;
  Append(operation, precedence_.Latest(std::move(waits_for)));
}

uint32_t StreamLayout::NewStream() {
  if (precedence_.lane_count() < kStreamsMax) {
    bytes_on_stream_.push_back(0);
    return precedence_.NewLane();
  }
  ++serialized_;
  const auto least = std::ranges::min_element(bytes_on_stream_);
  return static_cast<uint32_t>(least - bytes_on_stream_.begin());
}

uint32_t StreamLayout::Append(TraceOperation operation, std::vector<uint32_t> after) {
  const std::optional<uint32_t> last = precedence_.LastOfLane(operation.stream);
  if (last) {
    std::erase_if(
        after, [&](uint32_t other) { return other == *last || precedence_.Follows(*last, other); });
  }
  for (size_t i = after.size(); i > 1; --i) {
    TraceOperation join;
    join.kind = CollectiveKind::kCompute;
    join.stream = operation.stream;
    join.after = after[i - 1] + 1;
    join.source_file = operation.source_file;
    join.source_line = operation.source_line;
    operations_.push_back(join);
    precedence_.Add(join.stream, {});  // nothing waits for it but the operation
  }
  if (!after.empty()) operation.after = after.front() + 1;
  // One more, so that operations without bytes take turns.
  bytes_on_stream_[operation.stream] += operation.count + 1;
  operations_.push_back(operation);
  return precedence_.Add(operation.stream, after);
}

}  // namespace railyard
