// SPDX-License-Identifier: GPL-2.0-only
// An episode of the whole network while it is being simulated. Plain state.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// An instant at rest.
struct NetworkRest {
  int64_t time_ps = 0;
  uint32_t state = 0;  // its number in the cache
  uint64_t unrepeatable = 0;
  RestCounts counts;
};

struct EpisodeRecording {
  NetworkRest begin;
  int64_t disturbance_ps = 0;  // the next fault, known then
  RestCounts end_counts;       // when its last operation so far ended
  uint32_t gaps = 0;           // in which none ran
  Episode episode;
  std::optional<uint32_t> expected;  // what it is compared with
};

}  // namespace railyard
