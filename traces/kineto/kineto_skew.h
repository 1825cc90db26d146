// SPDX-License-Identifier: GPL-2.0-only
// Estimates the differences between the clocks of ranks from the ends of the collectives that they
// share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "traces/trace/import_report.h"

namespace railyard {

// Collects the ends of collectives. A collective ends on all of its ranks at about the same time,
// so the median difference of the ends is that of the clocks.
class CollectiveEnds {
 public:
  // Adds the end of a rank's next collective on a group, by the rank's clock. `group` is any number
  // that ranks have in common; `identity` is as in CapturedCall. Precondition: |end_ps| < 2^61.
  void Add(uint32_t group, uint32_t rank, uint64_t identity, int64_t end_ps) {
    ends_[group][rank].push_back({identity, end_ps});
  }
  // Returns the largest difference between a rank and the lowest rank of a group. Collectives are
  // compared with those of the same identity or, without identities, in order; nullopt if no two
  // ranks have such, or numbers of calls on a group that are equal.
  std::optional<ClockSkew> LargestSkew() const;

 private:
  struct End {
    uint64_t identity = 0;
    int64_t ps = 0;
  };
  using Ends = std::vector<End>;
  static std::vector<int64_t> Differences(const Ends& ends, const Ends& reference);

  std::map<uint32_t, std::map<uint32_t, Ends>> ends_;  // by group and rank
};

}  // namespace railyard
