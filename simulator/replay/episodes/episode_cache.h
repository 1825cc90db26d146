// SPDX-License-Identifier: GPL-2.0-only
// Stores episodes so that they need not be simulated again. An episode is the simulation from one
// quiescent instant to the next. It is identified by the state in which it began and by the
// operations that began in it with their times; it stores their ends, the changes of counters, and
// the state in which it ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "simulator/execution/lanes/critical_path.h"
#include "simulator/replay/episodes/episode_place.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// Describes an operation that began in an episode; times are relative to the episode's start.
struct EpisodeOperation {
  EpisodePlace place{};
  uint32_t plan = 0;  // its effect: equal for equal calls
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  bool operator==(const EpisodeOperation&) const = default;
};

// Describes the critical path of an operation of an episode; its GPUs are places.
using EpisodePath = PathRecord<EpisodePlace>;

struct Episode {
  uint32_t begin_state = 0;  // numbers of the cache
  uint32_t end_state = 0;
  // The partition in which it was recorded; kNone if that is the whole network.
  PartitionIndex partition = PartitionIndex::kNone;
  int64_t duration_ps = 0;                     // to the instant found to be quiescent
  std::vector<EpisodeOperation> operations{};  // in the order in which they began
  std::vector<uint32_t> end_order{};           // of `operations`, in the order in which they ended
  std::vector<EpisodePath> paths{};            // of `operations`, if paths are kept
  // By operation, in a partition of NICs: from when on its GPU is at rest, and so are those with
  // which it exchanges; relative to the episode's start.
  std::vector<int64_t> rests_ps{};
  CountChanges changes{};
  CountChanges changes_after_end{};  // of these, changes since its last operation ended
  // Is true if the changes after its end are known, and no payload was in flight then.
  bool can_be_last = false;

  // Returns the index of the operation of that place in `operations`, or their number.
  size_t OperationAt(EpisodePlace place) const {
    const auto found = std::ranges::find(operations, place, &EpisodeOperation::place);
    return static_cast<size_t>(found - operations.begin());
  }
  int64_t LastEndPs() const { return operations[end_order.back()].end_ps; }
};

class EpisodeCache {
 public:
  // The default limit on the memory of all states and episodes, beyond which nothing is added.
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;
  // Returns the limit for a job of that number of calls: kBytesMax, and what an episode of half of
  // the calls takes, which has room for an iteration if there is another one.
  static uint64_t BytesMaxOf(uint64_t calls, bool keep_paths);
  EpisodeCache() = default;
  explicit EpisodeCache(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  static constexpr uint32_t kStateUnknown = UINT32_MAX;
  // Returns the number of the state; equal states have equal numbers. Returns kStateUnknown for a
  // new state for which there is no room.
  uint32_t NumberOf(StateSnapshot state);
  const StateSnapshot& state(uint32_t number) const { return states_[number]; }

  // Adds the episode and returns its number, or kStateUnknown if there is no room. Precondition:
  // its states are known and it has operations.
  uint32_t Add(Episode episode);
  // Returns the episodes that began in the state with this operation, the most recently used first.
  std::vector<uint32_t>& Find(uint32_t state, EpisodePlace place, uint32_t plan);
  Episode& episode(uint32_t index) { return episodes_[index]; }
  size_t episode_count() const { return episodes_.size(); }

 private:
  // Returns false, and reserves nothing, if there is no room.
  bool Reserve(uint64_t bytes);
  static uint64_t BytesOfOperations(uint64_t operations, bool has_paths);
  static uint64_t KeyOf(uint32_t state, EpisodePlace place, uint32_t plan);

  uint64_t bytes_max_ = kBytesMax;
  uint64_t bytes_ = 0;
  std::deque<StateSnapshot> states_;
  std::unordered_multimap<uint64_t, uint32_t> numbers_;  // by the state's hash
  std::deque<Episode> episodes_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_key_;
};

}  // namespace railyard
