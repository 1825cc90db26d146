// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_skew.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <unordered_map>

namespace railyard {

std::vector<int64_t> CollectiveEnds::Differences(const Ends& ends, const Ends& reference) {
  const auto has_identity = [](const End& end) { return end.identity != 0; };
  std::vector<int64_t> differences;
  if (std::ranges::all_of(ends, has_identity) && std::ranges::all_of(reference, has_identity)) {
    std::unordered_map<uint64_t, int64_t> reference_ps;
    for (const End& end : reference) reference_ps.try_emplace(end.identity, end.ps);
    for (const End& end : ends) {
      const auto same = reference_ps.find(end.identity);
      if (same != reference_ps.end()) differences.push_back(end.ps - same->second);
    }
  } else if (ends.size() == reference.size()) {
    for (size_t i = 0; i < ends.size(); ++i) differences.push_back(ends[i].ps - reference[i].ps);
  }
  return differences;
}

std::optional<ClockSkew> CollectiveEnds::LargestSkew() const {
  std::optional<ClockSkew> largest;
  for (const auto& [group, ends_of_rank] : ends_) {
    const auto& [lowest, reference] = *ends_of_rank.begin();
    for (const auto& [rank, ends] : ends_of_rank) {
      if (rank == lowest) continue;
      std::vector<int64_t> differences = Differences(ends, reference);
      if (differences.empty()) continue;
      const auto middle = differences.begin() + static_cast<ptrdiff_t>(differences.size() / 2);
      std::nth_element(differences.begin(), middle, differences.end());
      if (largest && std::abs(*middle) <= std::abs(largest->ps)) continue;
      largest = {.rank = rank, .other = lowest, .ps = *middle};
    }
  }
  return largest;
}

}  // namespace railyard
