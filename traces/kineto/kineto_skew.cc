// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_skew.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace railyard {

std::optional<ClockSkew> CollectiveEnds::LargestSkew() const {
  std::optional<ClockSkew> largest;
  for (const auto& [group, ends_of_rank] : ends_) {
    const auto& [lowest, reference] = *ends_of_rank.begin();
    for (const auto& [rank, ends] : ends_of_rank) {
      if (rank == lowest || ends.size() != reference.size()) continue;
      std::vector<int64_t> differences;
      for (size_t i = 0; i < ends.size(); ++i) differences.push_back(ends[i] - reference[i]);
      const auto middle = differences.begin() + static_cast<ptrdiff_t>(differences.size() / 2);
      std::nth_element(differences.begin(), middle, differences.end());
      if (largest && std::abs(*middle) <= std::abs(largest->ps)) continue;
      largest = {.rank = rank, .other = lowest, .ps = *middle};
    }
  }
  return largest;
}

}  // namespace railyard
