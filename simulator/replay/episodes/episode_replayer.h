// SPDX-License-Identifier: GPL-2.0-only
// Episodes of the whole network. When nothing runs, all state is at rest and a call is due, the
// calls that follow do what they did the last time, if they begin from the same state, at the same
// times relative to one another, and nothing disturbs them before the network is at rest again.
// Then they are replayed: they end as they did, the counters grow as they did, and the state
// becomes that in which the episode ended. Else the episode is simulated and recorded.
//
// A hit is refused where any of these differs from what is known: the state with which the episode
// begins, every call's rank, plan and begin, what the programs begin until it ends; or where a
// change is due before it ends, something watches one of its collectives, or the run would end in
// it while payload was on its way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/episode_recording.h"
#include "simulator/replay/episodes/replay_cache_mode.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/plan_numbers.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/state/state_registry.h"

namespace railyard {

class EpisodeReplayer {
 public:
  // The simulation that is replayed. All must outlive the replayer.
  struct Simulation {
    FabricSimulatorImpl& engine;
    const StateRegistry& state;  // of everything that decides what comes
    const FabricNetwork& network;
    const CallTable& calls;
    StreamRunner& streams;
    CallLedger& ledger;
    const PlanNumbers& plans;
    const ProgressWatch& progress;
  };
  // `cache` must outlive this. `keep_paths`: the ledger keeps critical paths.
  EpisodeReplayer(const Simulation& simulation, EpisodeCache& cache, ReplayCacheMode mode,
                  bool keep_paths)
      : run_(simulation), cache_(cache), wanted_mode_(mode), mode_(mode), keep_paths_(keep_paths) {}

  // Precondition: nothing runs, and the first pending call is due. True: calls that were pending
  // have been replayed. In ReplayCacheMode::kVerify none is, and what differs is a SIM_CHECK.
  bool ReplayFromRest();
  // A call has begun to be simulated; it ends now; the last that ran has ended.
  void OnBegin(uint32_t operation);
  void OnEnd(uint32_t operation);
  void OnNothingRuns();

  // The calls that run become no episode.
  void StopRecording() { recording_.reset(); }
  // Calls do something else now: nothing that is known holds any more.
  void Forget() { cache_ = {}; }
  // The job may repeat itself from now on even if it did not before.
  void LookAgain();

  // The last calls were replayed, and packets are counted that do not exist.
  bool has_ended_in_replay() const { return has_ended_in_replay_; }

 private:
  bool IsQuiet();
  std::optional<NetworkRest> RestNow();
  // Replays from a state on as long as something is known; the episodes, in order.
  struct Replayed {
    std::vector<uint32_t> episodes;
    uint32_t state = 0;         // after them
    int64_t rest_ps = 0;        // when that was
    int64_t last_begin_ps = 0;  // of the last
    bool is_verified = false;   // an episode that is known is simulated instead
  };
  Replayed ReplayKnown(const NetworkRest& rest);
  void NoteMiss();
  void AddCounts(std::vector<uint32_t> replayed);
  void EndWith(const Episode& episode, int64_t begin_ps);
  std::optional<uint32_t> TryKnown(uint32_t state);
  bool Try(const Episode& episode);
  bool MayHappen(const Episode& episode, int64_t start_ps) const;
  bool FollowEpisode(const Episode& episode, int64_t start_ps);
  void NoteTried(const Episode& episode, int64_t start_ps);
  void StartRecording(const NetworkRest& rest);
  void FinishRecording(const NetworkRest& rest);
  uint32_t StateWithWhatIsNew(const NetworkRest& now, uint32_t state);
  void CheckLastEpisode();

  Simulation run_;
  EpisodeCache& cache_;
  ReplayCacheMode wanted_mode_;
  ReplayCacheMode mode_;  // kOff, too, once the job has not repeated itself for long
  bool keep_paths_;
  std::optional<EpisodeRecording> recording_;
  std::vector<uint32_t> recorded_;  // by operation that runs: its place in the recording
  int64_t next_disturbance_ps_ = kNeverPs;
  uint32_t misses_ = 0;  // in a row
  bool has_ended_in_replay_ = false;
  std::vector<Call> tried_;  // what FollowEpisode() let begin
};

}  // namespace railyard
