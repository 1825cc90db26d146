// SPDX-License-Identifier: GPL-2.0-only
// What a step of a schedule says by itself: whom it names, and whether it makes sense.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/collectives/schedule.h"
#include "workloads/collectives/schedule_check.h"

namespace railyard {

// Whom a step receives from, or sends to, as its recv_from or send_to says: of those the lane
// lists, which are sorted by rank. One that is not listed is as well.
std::vector<LanePeer> PeersNamed(int32_t named, const std::vector<LanePeer>& by_rank);

// Empty if right, else what is wrong. `peers`, each direction sorted by rank, are those of the lane
// of `rank` that the step is on.
std::string CheckStep(const ScheduleSubject& subject, uint32_t rank_count, uint32_t rank,
                      const LanePeers& peers, const Step& step);

}  // namespace railyard
