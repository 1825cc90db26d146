// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/added_time.h"

#include <algorithm>

namespace railyard {

AddedTime SplitAddedTime(const PathTimes& spent_ps, const PathTimes& baseline_spent_ps,
                         int64_t added_ps) {
  const auto spent = [&](PathCause cause) { return spent_ps[static_cast<size_t>(cause)]; };
  const auto more = [&](PathCause cause) {
    return spent(cause) - baseline_spent_ps[static_cast<size_t>(cause)];
  };
  AddedTime added{.retransmission_ps = more(PathCause::kRetransmission),
                  .timeout_ps = more(PathCause::kTimeout),
                  .slow_peer_ps = more(PathCause::kSlowPeer)};
  // Messages took longer; as far as they used other paths, that is the cause.
  const int64_t way_ps = more(PathCause::kTransit) + more(PathCause::kRerouted);
  added.rerouting_ps = std::clamp<int64_t>(way_ps, 0, spent(PathCause::kRerouted));
  added.queueing_ps = way_ps - added.rerouting_ps;
  added.other_ps =
      added_ps - added.retransmission_ps - added.timeout_ps - added.slow_peer_ps - way_ps;
  return added;
}

}  // namespace railyard
