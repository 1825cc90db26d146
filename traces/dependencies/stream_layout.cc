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
    operation.stream = StreamBehind(after).value_or(kStreamsMax);
    if (operation.stream == kStreamsMax) operation.stream = NewStream();
  }
  return Append(operation, std::move(after));
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
    const auto is_implied = [&](uint32_t kept) { return same(kept) || Follows(kept, other); };
    if (std::none_of(latest.begin(), latest.end(), is_implied)) latest.push_back(other);
  }
  return latest;
}

bool StreamLayout::Follows(uint32_t operation, uint32_t earlier) const {
  const Followed* const followed = followed_[operation].get();
  const uint32_t stream = operations_[earlier].stream;
  return followed != nullptr && stream < followed->size() && (*followed)[stream] > earlier;
}

std::shared_ptr<const StreamLayout::Followed> StreamLayout::FollowedBehind(
    std::optional<uint32_t> last, const std::vector<uint32_t>& after) const {
  std::shared_ptr<const Followed> behind_last = last ? followed_[*last] : nullptr;
  if (after.empty()) return behind_last;
  Followed followed = behind_last ? *behind_last : Followed();
  followed.resize(last_on_stream_.size());
  for (const uint32_t other : after) {
    if (const Followed* const behind = followed_[other].get()) {
      for (size_t i = 0; i < behind->size(); ++i) {
        followed[i] = std::max(followed[i], (*behind)[i]);
      }
    }
    uint32_t& of_stream = followed[operations_[other].stream];
    of_stream = std::max(of_stream, other + 1);
  }
  return std::make_shared<const Followed>(std::move(followed));
}

std::optional<uint32_t> StreamLayout::StreamBehind(const std::vector<uint32_t>& after) const {
  for (uint32_t stream = 0; stream < last_on_stream_.size(); ++stream) {
    const std::optional<uint32_t> last = last_on_stream_[stream];
    const auto is_behind = [&](uint32_t other) { return Follows(other, *last); };
    if (last && std::ranges::any_of(after, is_behind)) return stream;
  }
  return std::nullopt;
}

uint32_t StreamLayout::NewStream() {
  if (last_on_stream_.size() < kStreamsMax) {
    last_on_stream_.emplace_back();
    bytes_on_stream_.push_back(0);
    return static_cast<uint32_t>(last_on_stream_.size() - 1);
  }
  ++serialized_;
  const auto least = std::ranges::min_element(bytes_on_stream_);
  return static_cast<uint32_t>(least - bytes_on_stream_.begin());
}

uint32_t StreamLayout::Append(TraceOperation operation, std::vector<uint32_t> after) {
  const std::optional<uint32_t> last = last_on_stream_[operation.stream];
  if (last) std::erase_if(after, [&](uint32_t other) { return Follows(*last, other); });
  std::shared_ptr<const Followed> followed = FollowedBehind(last, after);
  for (size_t i = after.size(); i > 1; --i) {
    TraceOperation join;
    join.kind = CollectiveKind::kCompute;
    join.stream = operation.stream;
    join.after = after[i - 1] + 1;
    join.source_file = operation.source_file;
    join.source_line = operation.source_line;
    operations_.push_back(join);
    followed_.push_back(nullptr);  // nothing waits for it but the operation
  }
  if (!after.empty()) operation.after = after.front() + 1;
  const auto number = static_cast<uint32_t>(operations_.size());
  last_on_stream_[operation.stream] = number;
  // One more, so that operations without bytes take turns.
  bytes_on_stream_[operation.stream] += operation.count + 1;
  operations_.push_back(operation);
  followed_.push_back(std::move(followed));
  return number;
}

}  // namespace railyard
