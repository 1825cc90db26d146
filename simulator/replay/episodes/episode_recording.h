// SPDX-License-Identifier: GPL-2.0-only
// Records an episode of the whole network while it is being simulated, as plain state.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/state/field_check.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// Describes a quiescent instant.
struct NetworkRest {
  int64_t time_ps = 0;
  uint32_t state = 0;  // its number in the cache
  uint64_t unrepeatable = 0;
  CountSnapshot counts;
};

struct EpisodeRecording {
  NetworkRest begin;
  int64_t disturbance_ps = 0;  // time of the next fault, as known then
  CountSnapshot end_counts;    // when its last operation so far ended
  uint32_t gaps = 0;           // intervals in which no operation ran
  Episode episode;
  std::optional<uint32_t> expected;  // episode with which it is compared
  FixedMembers fixed;                // when it began, if it is compared
};

}  // namespace railyard
