// SPDX-License-Identifier: GPL-2.0-only
// Checks one step of a schedule on its own: the peers that it names, and whether its fields are
// consistent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/collectives/schedule.h"
#include "workloads/collectives/schedule_check.h"

namespace railyard {

// Returns the peers that a step's recv_from or send_to names, among those the lane lists (sorted by
// rank). A peer that is named but not listed is returned as well.
std::vector<LanePeer> PeersNamed(int32_t named, const std::vector<LanePeer>& by_rank);

// Returns an empty string if the step is correct, else the error. `peers`, each direction sorted by
// rank, are those of the step's lane of `rank`.
std::string CheckStep(const ScheduleSubject& subject, uint32_t rank_count, RankIndex rank,
                      const LanePeers& peers, const Step& step);

}  // namespace railyard
