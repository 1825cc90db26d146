// SPDX-License-Identifier: GPL-2.0-only
// Replays episodes of partitions. If a partition is quiescent and a collective of only its GPUs
// begins there, its calls end as they did the last time that a partition of the same kind was in
// the same state and the calls began at the same times relative to each other. Otherwise the
// collective is simulated ahead of all pending events, the partition is restored, and the result is
// replayed. Equal partitions share episodes; GPUs are numbered by their places there.
//
// A hit is refused if any of these differs from the stored episode: the partition's kind, shape,
// identity or state, every call's place, plan and start. It is also refused if a change is due
// before the partition has settled, or if the programs or other traffic may use it again before
// that. A partition's next collective may overlap an episode on NICs that is replayed to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/replay/episodes/count_replayed.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/replay_cache_mode.h"
#include "simulator/replay/partitions/partition.h"
#include "simulator/replay/partitions/partition_host.h"
#include "simulator/replay/partitions/partition_map.h"
#include "simulator/replay/partitions/partition_neighbours.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/replay/streams/plan_numbers.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/state/state_archive.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/units.h"

namespace railyard {

class PartitionReplayer {
 public:
  // An abort of a part of the job must be scheduled at least this time ahead.
  static constexpr int64_t kAbortNoticePs = 100 * kPsPerMs;

  // Names the parts of the simulation that is replayed. All must outlive the replayer.
  struct Simulation {
    FabricSimulatorImpl& engine;
    const CallTable& calls;
    StreamRunner& streams;
    CallLedger& ledger;
    PlanCache& plans;
    const PlanNumbers& numbers;
    const ProgressWatch& progress;
    PartitionMap& map;
    PartitionNeighbours& neighbours;
    PartitionHost& host;
  };
  // `cache` must outlive this, and is used for partitions only. `mode` is not kOff if the map has
  // partitions. With `keep_paths` the ledger keeps critical paths.
  PartitionReplayer(const Simulation& simulation, EpisodeCache& cache, ReplayCacheMode mode,
                    bool keep_paths);

  // Must be called when a call has begun, and when its channels are due to begin. Each returns true
  // if the call is replayed; it then ends without channels.
  bool OnBegin(RunningIndex operation);
  bool OnLaunch(RunningIndex operation);
  // Must be called when a call ends, simulated or replayed.
  void OnEnd(RunningIndex operation);

  // Must be called when traffic of other rails crosses the NICs and NVLinks of these GPUs from now
  // on. Throws SharedBuffers::NotIndependent if it crosses a partition that is being replayed.
  void OnDetour(std::span<const GpuIndex> gpus);
  // Must be called when a part of the job is halted: its calls no longer run, and its connections
  // are closed. Throws SharedBuffers::NotIndependent if one of its partitions is being replayed.
  void Halt(PartIndex part);
  // Must be called when a part of the job ends, at least kAbortNoticePs after that was known.
  void Abort(PartIndex part);
  // Discards all episodes after the map has been rebuilt. Precondition: nothing is being replayed.
  void Rebuild();

  // Must be called when anything other than calls and faults of a partition has changed its state.
  void ForgetStates();
  // Begins no episodes from now on.
  void Stop() { is_stopped_ = true; }
  // Does the same as EpisodeReplayer::SetCounting().
  void SetCounting(CountReplayed counting) { counting_ = std::move(counting); }

  bool is_any_replayed() const { return replayed_ > 0; }
  // Returns how many known episodes were simulated and found equal (ReplayCacheMode::kVerify).
  uint64_t episodes_verified() const { return episodes_verified_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Describes a collective of all GPUs of a partition while it is the only one in it, from the
  // first call's start to the last call's end.
  struct CurrentEpisode {
    CollectiveIndex collective{};
    int64_t begin_ps = 0;
    uint32_t known = kNone;  // in the cache
    // Is kNone if it was simulated for this collective.
    ReplayRule rule = ReplayRule::kNone;
    bool is_replayed = false;  // otherwise it is simulated, and compared
    uint32_t calls_ended = 0;
    CountSnapshot begin_counts{};    // if it is simulated
    std::vector<int64_t> ends_ps{};  // if it is simulated; by place, since the start
  };
  // Describes the state that an episode has left in a partition of NVLinks, where nothing has been
  // simulated since.
  struct LastEnd {
    uint32_t state = EpisodeCache::kStateUnknown;  // as it was at the end
    int64_t settled_ps = 0;                        // its instants have passed from then on
  };
  // Describes the current calls and episodes of a partition.
  struct Activity {
    bool is_on_detour = false;               // connections that moved to other NICs cross it
    std::vector<RunningIndex> operations{};  // those that use it
    uint32_t launched = 0;                   // number of these that are simulated
    std::unordered_set<uint64_t> made{};     // calls whose connections are open: MadeKey()
    uint32_t misses = 0;                     // in a row
    uint32_t unused = 0;                     // simulated ahead in vain, consecutively
    std::optional<CurrentEpisode> episode{};
    // Episodes that are replayed to their ends after the next collective has begun. The partition
    // has been put into the states that they leave.
    std::vector<CurrentEpisode> ending{};
    LastEnd last{};
    // The states that ends become when their instants have passed, by the number of the end.
    std::unordered_map<uint32_t, uint32_t> settled_states{};
  };
  // Describes a call that has begun, or whose start is known.
  struct EpisodeCall {
    int64_t begin_ps = 0;
    CallNumber number{};
    Call call;
    RunningIndex operation = RunningIndex::kNone;  // none if it has not begun
  };
  // Describes a partition at a quiescent instant.
  struct Rest {
    bool is_quiescent = false;
    StateSnapshot state{};
    uint32_t number = EpisodeCache::kStateUnknown;  // of the state, if it was requested
    CountSnapshot counts{};  // first the partition's, then the whole network's
    uint64_t unrepeatable = 0;
  };

  static uint64_t MadeKey(uint32_t plan, EpisodePlace place) {
    return uint64_t{plan} << 32 | place;
  }
  PartitionIndex PartitionOf(RunningIndex operation) const {
    return partition_of_operation_[operation];
  }
  // Returns the part of the job to which a partition belongs.
  PartIndex PartOf(PartitionIndex partition) const {
    return run_.calls.PartOf(RankOn(run_.map.partition(partition).gpus.front()));
  }
  CollectiveIndex CollectiveOf(RunningIndex operation) const;
  // Returns the episode of the partition that the operation is part of, or null.
  CurrentEpisode* EpisodeOf(PartitionIndex partition, RunningIndex operation);
  bool IsReplayed(const Activity& activity) const {
    return !activity.ending.empty() || (activity.episode && activity.episode->is_replayed);
  }
  bool IsOnDetour(const Partition& partition) const;

  // These begin episodes (partition_replayer.cc).
  void BeginEpisode(PartitionIndex partition, CollectiveIndex collective);
  bool MayHaveEpisode(PartitionIndex partition, CollectiveIndex collective);
  bool MayLast(const Partition& partition, CollectiveIndex collective,
               const std::vector<EpisodeCall>& calls, int64_t disturbance_ps);
  void Renew(PartitionIndex partition);
  std::vector<EpisodeCall> CallsOf(PartitionIndex partition, CollectiveIndex collective);
  bool IsOpenOnNics(const Partition& partition, CollectiveIndex collective) const;
  Rest NumberedRest(PartitionIndex number);
  uint32_t FindKnown(const Partition& partition, const std::vector<EpisodeCall>& calls,
                     uint32_t state);
  bool CanReplay(PartitionIndex number, const std::vector<EpisodeCall>& calls,
                 const Episode& episode, int64_t disturbance_ps);
  bool MayOverlap(PartitionIndex number, const Call& call, int64_t time_ps, const Episode& episode,
                  size_t operation);
  bool MayBeTouched(const Partition& partition, const std::vector<EpisodeCall>& calls,
                    int64_t until_ps);
  int64_t NextDisturbancePs(bool by_faults) const;
  void LetEnd(PartitionIndex number);
  void CheckMayOverlap(PartitionIndex number, const Call& call);
  void NoteLaunch(PartitionIndex number, RunningIndex operation);
  void CheckIsIndependent(const Call& call);
  void Follow(RunningIndex operation);
  // These end episodes.
  void Finish(PartitionIndex number, const CurrentEpisode& episode);
  void PutEnd(const Partition& partition, const CurrentEpisode& episode);
  void EndReplay(const Partition& partition);
  void CheckEpisode(const Partition& partition, const CurrentEpisode& episode);

  // These handle state and simulation ahead of time (partition_speculation.cc).
  // Without counts, those of the result are empty.
  Rest RestOf(const Partition& partition, bool is_begin, bool with_counts = true);
  Rest CountedRest(const Partition& partition, uint32_t state);
  // Puts the archive's state, and adds its changes of counters.
  void Apply(const Partition& partition, StateArchive archive);
  uint32_t RecordAhead(PartitionIndex number, const std::vector<EpisodeCall>& calls,
                       const Rest& rest);
  void PutBack(const Partition& partition, const Rest& rest);
  std::vector<int64_t> RestsOf(const Partition& partition, const Episode& episode,
                               const std::vector<int64_t>& done_ps) const;

  Simulation run_;
  EpisodeCache& cache_;
  ReplayCacheMode mode_;
  bool keep_paths_;
  bool is_stopped_ = false;
  std::vector<Activity> activities_;                    // by partition
  std::vector<PartitionIndex> partition_of_operation_;  // by running operation
  uint32_t replayed_ = 0;                               // partitions that are replayed now
  uint64_t episodes_verified_ = 0;
  std::set<GpuIndex> gpus_on_detours_;
  CountReplayed counting_ = CountAtOnce;
};

}  // namespace railyard
