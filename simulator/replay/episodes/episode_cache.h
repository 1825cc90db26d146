// SPDX-License-Identifier: GPL-2.0-only
// Episodes: what a simulation did from one instant of rest to the next, kept so that it need not be
// simulated again. An episode is told by the state it began in, and by which operations began in it
// and when; it tells when they ended, what was counted, and the state it ended in.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "simulator/execution/lanes/critical_path.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// One that began in an episode; times since the episode's begin.
struct EpisodeOperation {
  uint32_t rank = 0;  // of a partition's: its GPU's place there
  uint32_t plan = 0;  // what it does: equal for equal calls
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  bool operator==(const EpisodeOperation&) const = default;
};

struct Episode {
  uint32_t begin_state = 0;  // numbers of the cache
  uint32_t end_state = 0;
  int64_t duration_ps = 0;                     // to the instant at which rest was seen
  std::vector<EpisodeOperation> operations{};  // in the order in which they began
  std::vector<uint32_t> end_order{};           // of `operations`, in the order in which they ended
  std::vector<CriticalPath> paths{};           // of `operations`, where paths are kept
  RestCountChanges changes{};
  RestCountChanges changes_after_end{};  // of those, since its last operation ended
  // The changes after its end are known, and no payload was on its way then.
  bool can_be_last = false;

  int64_t LastEndPs() const { return operations[end_order.back()].end_ps; }
};

class EpisodeCache {
 public:
  // The memory that all states and episodes may take; beyond it nothing is added.
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  // The number of the state; equal states have one. The same with and without room for it: a state
  // that found none is kStateUnknown.
  static constexpr uint32_t kStateUnknown = UINT32_MAX;
  uint32_t NumberOf(RestState state);
  const RestState& state(uint32_t number) const { return states_[number]; }

  // Its number; kStateUnknown: there is no room. Precondition: its states are known and it has
  // operations.
  uint32_t Add(Episode episode);
  // Those that began in the state with this operation, the ones used last first.
  std::vector<uint32_t>& Find(uint32_t state, uint32_t rank, uint32_t plan);
  Episode& episode(uint32_t index) { return episodes_[index]; }
  size_t episode_count() const { return episodes_.size(); }

 private:
  static uint64_t KeyOf(uint32_t state, uint32_t rank, uint32_t plan);

  uint64_t bytes_ = 0;
  std::deque<RestState> states_;
  std::unordered_multimap<uint64_t, uint32_t> numbers_;  // by the state's hash
  std::deque<Episode> episodes_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_key_;
};

}  // namespace railyard
