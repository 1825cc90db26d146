// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/precedence.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace railyard {

uint32_t Precedence::NewLane() {
  last_of_lane_.emplace_back();
  return static_cast<uint32_t>(last_of_lane_.size() - 1);
}

uint32_t Precedence::Add(uint32_t lane, const std::vector<uint32_t>& after) {
  std::optional<uint32_t>& last = last_of_lane_[lane];
  std::vector<uint32_t> before = after;
  if (last) before.push_back(*last);
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  const bool is_chain = last && before.size() == 1;
  Followed followed = is_chain ? operations_[*last].followed : FollowedBehind(before);
  if (followed == nullptr && last) followed = operations_[*last].followed;
  const auto number = static_cast<uint32_t>(operations_.size());
  operations_.push_back({.lane = lane, .followed = std::move(followed)});
  last = number;
  return number;
}

bool Precedence::Follows(uint32_t operation, uint32_t earlier) const {
  const uint32_t lane = operations_[earlier].lane;
  if (operations_[operation].lane == lane) return operation > earlier;
  const Followed& followed = operations_[operation].followed;
  if (followed == nullptr) return false;
  const auto at = std::ranges::lower_bound(*followed, lane, {}, &LaneEnd::lane);
  return at != followed->end() && at->lane == lane && at->operation >= earlier;
}

std::vector<uint32_t> Precedence::Latest(std::vector<uint32_t> operations) {
  if (operations.size() < 2) return operations;
  if (operations == last_operations_) return last_latest_;
  last_operations_ = operations;
  const auto lane_of = [&](uint32_t operation) { return LaneOf(operation); };
  const auto is_of_one_lane = [&](uint32_t a, uint32_t b) { return LaneOf(a) == LaneOf(b); };
  std::ranges::sort(operations, std::greater<>());
  std::ranges::stable_sort(operations, {}, lane_of);
  operations.erase(std::unique(operations.begin(), operations.end(), is_of_one_lane),
                   operations.end());
  std::ranges::sort(operations, std::greater<>());
  std::vector<uint32_t> latest;
  for (const uint32_t operation : operations) {
    const auto follows = [&](uint32_t later) { return Follows(later, operation); };
    if (std::ranges::none_of(latest, follows)) latest.push_back(operation);
  }
  last_latest_ = latest;
  return latest;
}

std::optional<uint32_t> Precedence::LaneBehind(const std::vector<uint32_t>& after) const {
  std::optional<uint32_t> lowest;
  size_t tried = 0;
  for (const uint32_t other : after) {
    if (operations_[other].followed == nullptr) continue;
    for (const LaneEnd& end : *operations_[other].followed) {
      if ((lowest && end.lane >= *lowest) || ++tried > kLanesTriedMax) break;
      if (last_of_lane_[end.lane] == end.operation) lowest = end.lane;
    }
  }
  return lowest;
}

std::vector<Precedence::LaneEnd> Precedence::LatestOfBoth(const std::vector<LaneEnd>& a,
                                                          const std::vector<LaneEnd>& b) {
  std::vector<LaneEnd> both;
  both.reserve(a.size() + b.size());
  auto next = b.begin();
  for (const LaneEnd& end : a) {
    for (; next != b.end() && next->lane < end.lane; ++next) both.push_back(*next);
    both.push_back(end);
    if (next == b.end() || next->lane != end.lane) continue;
    both.back().operation = std::max(end.operation, next->operation);
    ++next;
  }
  both.insert(both.end(), next, b.end());
  return both;
}

// Returns nullptr if there is nothing to know, or no room for it.
Precedence::Followed Precedence::FollowedBehind(const std::vector<uint32_t>& before) {
  if (before == last_before_) return last_followed_;
  const size_t entries_max = kEntriesBeside + kEntriesPerOperation * operations_.size();
  std::vector<LaneEnd> all;
  for (const uint32_t operation : before) {  // ascending, so that the last one of a lane remains
    all.push_back({.lane = operations_[operation].lane, .operation = operation});
  }
  std::ranges::stable_sort(all, {}, &LaneEnd::lane);
  size_t kept = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + 1 == all.size() || all[i + 1].lane != all[i].lane) all[kept++] = all[i];
  }
  all.resize(kept);
  const std::vector<LaneEnd>* previous = nullptr;
  for (const uint32_t operation : before) {
    const std::vector<LaneEnd>* const followed = operations_[operation].followed.get();
    if (followed == nullptr || followed == std::exchange(previous, followed)) continue;
    all = LatestOfBoth(all, *followed);
    if (entries_ + all.size() > entries_max) return nullptr;
  }
  all.shrink_to_fit();
  entries_ += all.size();
  last_before_ = before;
  last_followed_ =
      all.empty() ? nullptr : std::make_shared<const std::vector<LaneEnd>>(std::move(all));
  return last_followed_;
}

}  // namespace railyard
