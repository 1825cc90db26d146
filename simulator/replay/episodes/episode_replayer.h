// SPDX-License-Identifier: GPL-2.0-only
// Replays episodes of the whole network. If no call runs, all state is quiescent and a call is due,
// the following calls have the same outcome as the last time, provided that they begin from the
// same state and at the same times relative to each other, and that nothing disturbs them before
// the network is quiescent again. Then they are replayed: they end at the stored times, the
// counters are increased, and the state becomes that in which the episode ended. Otherwise the
// episode is simulated and recorded.
//
// A hit is refused if any of these differs from the stored episode: the state in which it begins,
// every call's rank, plan and start, and the calls that the programs begin until it ends. It is
// also refused if a change is due before it ends, if one of its collectives is observed, or if the
// run would end in it while payload was in flight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/episodes/count_replayed.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "simulator/replay/episodes/episode_recording.h"
#include "simulator/replay/episodes/replay_cache_mode.h"
#include "simulator/replay/streams/call_ledger.h"
#include "simulator/replay/streams/plan_numbers.h"
#include "simulator/replay/streams/progress_watch.h"
#include "simulator/replay/streams/stream_runner.h"
#include "simulator/state/field_check.h"
#include "simulator/state/state_registry.h"

namespace railyard {

class EpisodeReplayer {
 public:
  // Names the parts of the simulation that is replayed. All must outlive the replayer.
  struct Simulation {
    FabricSimulatorImpl& engine;
    const StateRegistry& state;  // of all state that affects the future
    const FabricNetwork& network;
    const CallTable& calls;
    StreamRunner& streams;
    CallLedger& ledger;
    const PlanNumbers& plans;
    const ProgressWatch& progress;
  };
  // `cache` must outlive this. With `keep_paths` the ledger keeps critical paths.
  EpisodeReplayer(const Simulation& simulation, EpisodeCache& cache, ReplayCacheMode mode,
                  bool keep_paths)
      : run_(simulation), cache_(cache), wanted_mode_(mode), mode_(mode), keep_paths_(keep_paths) {}

  // Returns true if pending calls have been replayed. With ReplayCacheMode::kVerify none is
  // replayed, and a difference is a SIM_CHECK; so is a member that is not as its field table says.
  // Precondition: no call runs, and the first pending call is due.
  bool ReplayFromRest();
  // Must be called when a simulated call begins, when it ends, and when the last running call has
  // ended.
  void OnBegin(RunningIndex operation);
  void OnEnd(RunningIndex operation);
  void OnNothingRuns();

  // Discards the recording, so that the running calls do not become an episode.
  void StopRecording() { recording_.reset(); }
  // Discards all episodes, because the outcome of calls has changed.
  void Forget() { cache_ = {}; }
  // Resumes look-ups, because the job may repeat itself from now on.
  void LookAgain();

  // Makes `counting` count replayed packets, with the interval in which they would have been in
  // flight. Must be called before the first call.
  void SetCounting(CountReplayed counting) { counting_ = std::move(counting); }

  // Returns true if the last calls were replayed; the counters then include packets that do not
  // exist.
  bool has_ended_in_replay() const { return has_ended_in_replay_; }
  // Returns how many known episodes were simulated and found equal (ReplayCacheMode::kVerify).
  uint64_t episodes_verified() const { return episodes_verified_; }

 private:
  bool IsQuiet();
  std::optional<NetworkRest> RestNow();
  // Holds the episodes that are replayed one after the other from a state, as long as the next is
  // known.
  struct Replayed {
    std::vector<uint32_t> episodes;
    uint32_t state = 0;         // after them
    int64_t rest_ps = 0;        // time of that state
    int64_t last_begin_ps = 0;  // of the last
    bool is_verified = false;   // a known episode is simulated instead
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
  void CheckEpisode(const EpisodeRecording& recording, const Episode& found, bool is_comparable);
  void CheckLastEpisode();
  void CheckIdle() const;
  FixedMembers FixedNow() const;
  std::string ChangedIn(const EpisodeRecording& recording) const;

  Simulation run_;
  EpisodeCache& cache_;
  ReplayCacheMode wanted_mode_;
  ReplayCacheMode mode_;  // becomes kOff if the job has not repeated itself for long
  bool keep_paths_;
  std::optional<EpisodeRecording> recording_;
  std::vector<uint32_t> recorded_;  // by running operation: its place in the recording
  int64_t next_disturbance_ps_ = kNeverPs;
  uint32_t misses_ = 0;  // in a row
  bool has_ended_in_replay_ = false;
  uint64_t episodes_verified_ = 0;
  CountReplayed counting_ = CountAtOnce;
  std::vector<Call> tried_;  // calls that FollowEpisode() began
};

}  // namespace railyard
