// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/critical_path.h"

#include <tuple>

namespace railyard {

bool CriticalPath::EndsAfter(const CriticalPath& other) const {
  const auto key = [](const CriticalPath& path) {
    return std::tuple(-path.EndPs(), path.worst_from, path.worst_to, path.origin_gpu,
                      path.spent_ps);
  };
  return key(*this) < key(other);
}

void CriticalPath::WaitFor(const CriticalPath& last) {
  int64_t wait_ps = last.EndPs() - EndPs();
  if (wait_ps <= 0) return;
  if (last.collective == collective) {
    *this = last;
    return;
  }
  // The exact order is unknown; the wait is attributed to recovery first, then slowness, then
  // transit.
  Blame(last.worst_from, last.worst_to, std::min(wait_ps, last.worst_ps));
  for (const PathCause cause : {PathCause::kTimeout, PathCause::kRetransmission,
                                PathCause::kSlowPeer, PathCause::kRerouted}) {
    const int64_t part_ps = std::min(wait_ps, last.SpentPs(cause));
    Spend(cause, part_ps);
    wait_ps -= part_ps;
  }
  Spend(PathCause::kTransit, wait_ps);
}

}  // namespace railyard
