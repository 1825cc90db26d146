// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/stream_layout.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace railyard {

uint32_t StreamLayout::Add(TraceOperation operation, std::vector<uint32_t> waits_for) {
  std::vector<uint32_t> after = LatestOfStreams(std::move(waits_for));
  const auto before = std::find_if(after.begin(), after.end(), [&](uint32_t other) {
    return last_on_stream_[operations_[other].stream] == other;
  });
  if (before != after.end()) {
    operation.stream = operations_[*before].stream;
    after.erase(before);
  } else {
    operation.stream = NewStream();
  }
  return Append(operation, after);
}

void StreamLayout::AddBeside(uint32_t lane, TraceOperation operation,
                             std::vector<uint32_t> waits_for) {
  const auto [at, is_new] = stream_of_lane_.try_emplace(lane, 0);
  if (is_new) at->second = NewStream();
  operation.stream = at->second;
  Append(operation, LatestOfStreams(std::move(waits_for)));
}

std::vector<uint32_t> StreamLayout::LatestOfStreams(std::vector<uint32_t> waits_for) const {
  std::sort(waits_for.begin(), waits_for.end(), std::greater<>());
  std::vector<uint32_t> latest;
  for (const uint32_t other : waits_for) {
    const uint32_t stream = operations_[other].stream;
    const auto same = [&](uint32_t kept) { return operations_[kept].stream == stream; };
    if (std::none_of(latest.begin(), latest.end(), same)) latest.push_back(other);
  }
  return latest;
}

uint32_t StreamLayout::NewStream() {
  if (last_on_stream_.size() < kStreamsMax) {
    last_on_stream_.push_back(0);
    bytes_on_stream_.push_back(0);
    return static_cast<uint32_t>(last_on_stream_.size() - 1);
  }
  ++serialized_;
  const auto least = std::ranges::min_element(bytes_on_stream_);
  return static_cast<uint32_t>(least - bytes_on_stream_.begin());
}

uint32_t StreamLayout::Append(TraceOperation operation, const std::vector<uint32_t>& after) {
  for (size_t i = after.size(); i > 1; --i) {
    TraceOperation join;
    join.kind = CollectiveKind::kCompute;
    join.stream = operation.stream;
    join.after = after[i - 1] + 1;
    join.source_file = operation.source_file;
    join.source_line = operation.source_line;
    operations_.push_back(join);
  }
  if (!after.empty()) operation.after = after.front() + 1;
  const auto number = static_cast<uint32_t>(operations_.size());
  last_on_stream_[operation.stream] = number;
  // One more, so that operations without bytes take turns.
  bytes_on_stream_[operation.stream] += operation.count + 1;
  operations_.push_back(operation);
  return number;
}

}  // namespace railyard
