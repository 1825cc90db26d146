// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/partition_replayer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/units/time_end.h"
#include "workloads/programs/program_order.h"

namespace railyard {
namespace {

// A partition without a repetition in this many episodes is simulated without further look-ups; so
// is one of which this many were simulated ahead in vain.
constexpr uint32_t kPartitionMissesMax = 1024;
constexpr uint32_t kUnusedMax = 3;

}  // namespace

PartitionReplayer::PartitionReplayer(const Simulation& simulation, EpisodeCache& cache,
                                     ReplayCacheMode mode, bool keep_paths)
    : run_(simulation),
      cache_(cache),
      mode_(mode),
      keep_paths_(keep_paths),
      activities_(simulation.map.count()) {}

CollectiveIndex PartitionReplayer::CollectiveOf(RunningIndex operation) const {
  return run_.calls.CollectiveNumberOf(run_.streams.running()[operation].call);
}

// --- Begins --------------------------------------------------------------------------------------

bool PartitionReplayer::OnBegin(RunningIndex operation) {
  if (partition_of_operation_.size() <= operation) {
    partition_of_operation_.resize(operation + 1, PartitionIndex::kNone);
  }
  const PartitionIndex number = run_.map.PartitionOf(run_.streams.running()[operation].call);
  partition_of_operation_[operation] = number;
  if (number == PartitionIndex::kNone) return false;
  activities_[number].operations.push_back(operation);
  const std::optional<CurrentEpisode>& episode = activities_[number].episode;
  if (!episode || !episode->is_replayed || episode->collective != CollectiveOf(operation)) {
    return false;
  }
  Follow(operation);
  return true;
}

// The call, which begins or has begun, is replayed: it ends at the stored time.
void PartitionReplayer::Follow(RunningIndex operation) {
  const StreamRunner::Running& running = run_.streams.running()[operation];
  const Partition& partition = run_.map.partition(PartitionOf(operation));
  const CurrentEpisode& episode = *activities_[PartitionOf(operation)].episode;
  const Episode& known = cache_.episode(episode.known);
  const EpisodePlace place = partition.PlaceOf(running.call.gpu());
  const size_t at = known.OperationAt(place);
  SIM_CHECK(at < known.operations.size() &&
                known.operations[at].begin_ps == running.start_ps - episode.begin_ps,
            "a call that is replayed began otherwise");
  run_.ledger.NoteReplayed(episode.collective, episode.rule);
  if (keep_paths_) {
    CriticalPath path{
        known.paths[at].Renamed([&](EpisodePlace of_path) { return partition.gpus[of_path]; })};
    path.origin_ps += episode.begin_ps;
    run_.streams.SetPath(operation, path);
  }
  run_.streams.EndAt(operation, episode.begin_ps + known.operations[at].end_ps);
}

bool PartitionReplayer::OnLaunch(RunningIndex operation) {
  const Call call = run_.streams.running()[operation].call;
  const PartitionIndex number = PartitionOf(operation);
  if (number == PartitionIndex::kNone) {
    CheckIsIndependent(call);
    return false;
  }
  std::optional<CurrentEpisode>& episode = activities_[number].episode;
  const CollectiveIndex collective = CollectiveOf(operation);
  if (episode && episode->collective != collective) LetEnd(number);
  CheckMayOverlap(number, call);
  if (!episode && activities_[number].launched == 0) BeginEpisode(number, collective);
  if (run_.streams.running()[operation].replayed_end_ps != 0) return true;
  NoteLaunch(number, operation);
  CheckIsIndependent(call);
  return false;
}

// Another collective begins before the episode has ended everywhere. Where it begins, all that the
// episode has done is over; elsewhere it is replayed, so that the state that it leaves may be put
// ahead of time.
void PartitionReplayer::LetEnd(PartitionIndex number) {
  const Partition& partition = run_.map.partition(number);
  Activity& activity = activities_[number];
  if (activity.episode->is_replayed) {
    if (!partition.of_nics) throw SharedBuffers::NotIndependent();
    PutEnd(partition, *activity.episode);
    activity.ending.push_back(std::move(*activity.episode));
  }
  activity.episode.reset();
}

// Checks that the call may begin although episodes of its partition are still replayed elsewhere.
void PartitionReplayer::CheckMayOverlap(PartitionIndex number, const Call& call) {
  const EpisodePlace place = run_.map.partition(number).PlaceOf(call.gpu());
  for (const CurrentEpisode& ending : activities_[number].ending) {
    const Episode& episode = cache_.episode(ending.known);
    if (!MayOverlap(number, call, run_.engine.NowPs() - ending.begin_ps, episode,
                    episode.OperationAt(place))) {
      throw SharedBuffers::NotIndependent();
    }
  }
}

// A call that is simulated changes the partition's state, and may open connections, of which its
// states consist from then on.
void PartitionReplayer::NoteLaunch(PartitionIndex number, RunningIndex operation) {
  Activity& activity = activities_[number];
  const Call call = run_.streams.running()[operation].call;
  const EpisodePlace place = run_.map.partition(number).PlaceOf(call.gpu());
  ++activity.launched;
  activity.last = {};
  if (!activity.made.contains(MadeKey(run_.numbers.Of(call), place))) {
    activity.settled_states.clear();
  }
}

void PartitionReplayer::ForgetStates() {
  for (Activity& activity : activities_) {
    activity.last = {};
    activity.settled_states.clear();
  }
}

// A call that is simulated begins to use the network.
void PartitionReplayer::CheckIsIndependent(const Call& call) {
  if (replayed_ == 0 || !run_.map.UsesNics(call.rank, run_.calls.OperationOf(call))) return;
  const PartitionIndex own = run_.map.PartitionOf(call);  // CheckMayOverlap()
  for (PartitionIndex number{}; number < activities_.size(); ++number) {
    if (number == own || !run_.map.partition(number).of_nics || !IsReplayed(activities_[number])) {
      continue;
    }
    if (run_.neighbours.Touches(call, run_.map.partition(number)))
      throw SharedBuffers::NotIndependent();
  }
}

// Returns true if episodes of this partition are looked for.
bool PartitionReplayer::MayHaveEpisode(PartitionIndex number, CollectiveIndex collective) {
  const Partition& partition = run_.map.partition(number);
  const Activity& activity = activities_[number];
  // Something waits for how far a collective has come.
  const bool is_watched = run_.progress.IsAnyUnderWay(
      [this](CollectiveIndex watched) { return run_.ledger.HasEnded(watched); });
  if (is_stopped_ || !run_.map.IsOfPartitionAlone(number, collective) || !partition.is_in_turn ||
      activity.is_on_detour || activity.misses > kPartitionMissesMax || is_watched ||
      run_.host.MayMoveConnections()) {
    return false;
  }
  // A GPU that stands still does not end what it has begun.
  return std::ranges::none_of(partition.gpus,
                              [this](GpuIndex gpu) { return run_.host.StandsStill(gpu); });
}

// Returns true if the calls may end before something disturbs them.
bool PartitionReplayer::MayLast(const Partition& partition, CollectiveIndex collective,
                                const std::vector<EpisodeCall>& calls, int64_t disturbance_ps) {
  const int64_t bound_ps = run_.plans.BoundOf(collective);
  const int64_t least_end_ps = calls.front().begin_ps + bound_ps;
  return least_end_ps < disturbance_ps && bound_ps < kAbortNoticePs &&
         !MayBeTouched(partition, calls, least_end_ps);
}

void PartitionReplayer::BeginEpisode(PartitionIndex number, CollectiveIndex collective) {
  if (!MayHaveEpisode(number, collective)) return;
  Partition& partition = run_.map.partition(number);
  Activity& activity = activities_[number];
  const std::vector<EpisodeCall> calls = CallsOf(number, collective);
  if (calls.empty() || calls.back().begin_ps > kTimeEndPs) return;
  const int64_t disturbance_ps = NextDisturbancePs(partition.is_faulty);  // looks at every event
  if (!MayLast(partition, collective, calls, disturbance_ps)) return;
  Renew(number);
  Rest rest = NumberedRest(number);
  if (rest.number == EpisodeCache::kStateUnknown) return;
  CurrentEpisode episode{.collective = collective, .begin_ps = calls.front().begin_ps};
  episode.known = FindKnown(partition, calls, rest.number);
  if (episode.known == kNone) {
    if (activity.unused > kUnusedMax) return;
    rest = CountedRest(partition, rest.number);
    episode.known = RecordAhead(number, calls, rest);
    if (episode.known == kNone) return;
  } else {
    activity.misses = 0;
    episode.rule = cache_.episode(episode.known).partition == number ? ReplayRule::kPartition
                                                                     : ReplayRule::kLikePartition;
  }
  const bool is_new = episode.rule == ReplayRule::kNone;
  const bool can_replay = CanReplay(number, calls, cache_.episode(episode.known), disturbance_ps);
  if (is_new) activity.unused = can_replay ? 0 : activity.unused + 1;
  if (!can_replay) return;
  if (mode_ == ReplayCacheMode::kVerify) {
    episode.begin_counts = std::move(rest.counts);
    episode.ends_ps.resize(partition.gpus.size());
    activity.episode = std::move(episode);
    return;
  }
  if (!run_.host.BeginIndependent(partition)) return;
  ++replayed_;
  episode.is_replayed = true;
  activity.episode = std::move(episode);
  for (const EpisodeCall& call : calls) {
    if (call.operation != RunningIndex::kNone) Follow(call.operation);
  }
}

void PartitionReplayer::Renew(PartitionIndex number) {
  Partition& partition = run_.map.partition(number);
  const uint64_t before = partition.nics.identity;
  run_.host.Renew(partition);
  // The GPUs that are not at rest yet would have others to wait for.
  if (partition.nics.identity != before && !activities_[number].ending.empty()) {
    throw SharedBuffers::NotIndependent();
  }
}

// Returns the calls of the collective in the order of their begins; none if some begin is not known
// yet, another call uses the partition, or some of their connections have not been opened.
std::vector<PartitionReplayer::EpisodeCall> PartitionReplayer::CallsOf(PartitionIndex number,
                                                                       CollectiveIndex collective) {
  const Partition& partition = run_.map.partition(number);
  std::vector<EpisodeCall> calls;
  const auto add_pending = [&](const StreamRunner::Pending& pending) {
    const Call call = run_.streams.CallOf(pending);
    if (run_.calls.CollectiveNumberOf(call) != collective) return;
    calls.push_back({.begin_ps = pending.begin_ps, .number = pending.number, .call = call});
  };
  for (const RunningIndex operation : activities_[number].operations) {
    if (CollectiveOf(operation) != collective) {
      if (EpisodeOf(number, operation) == nullptr) return {};
      std::ranges::for_each(run_.streams.FollowersOf(operation), add_pending);
      continue;
    }
    const StreamRunner::Running& running = run_.streams.running()[operation];
    calls.push_back({.begin_ps = running.start_ps,
                     .number = run_.calls.NumberOf(running.call),
                     .call = running.call,
                     .operation = operation});
  }
  const bool have_all_begun = run_.ledger.times()[collective].last_start_ps != kNeverPs;
  for (const StreamRunner::Pending& pending : run_.streams.pending()) {
    if (have_all_begun) break;
    add_pending(pending);
  }
  std::unordered_set<uint32_t> places;
  bool are_made = true;
  for (const EpisodeCall& call : calls) {
    const EpisodePlace place = partition.PlaceOf(call.call.gpu());
    places.insert(place);
    are_made =
        are_made && activities_[number].made.contains(MadeKey(run_.numbers.Of(call.call), place));
  }
  if (calls.size() != partition.gpus.size() || places.size() != calls.size()) return {};
  if (!are_made) {
    if (!IsOpenOnNics(partition, collective)) return {};
    for (const EpisodeCall& call : calls) {
      activities_[number].made.insert(
          MadeKey(run_.numbers.Of(call.call), partition.PlaceOf(call.call.gpu())));
    }
  }
  std::ranges::sort(calls, [](const EpisodeCall& a, const EpisodeCall& b) {
    return std::pair(a.begin_ps, a.number) < std::pair(b.begin_ps, b.number);
  });
  return calls;
}

// Returns true if other collectives have opened all that this one needs. On NVLinks that is more
// than connections: the groups of GPUs for which switches add up.
bool PartitionReplayer::IsOpenOnNics(const Partition& partition, CollectiveIndex collective) const {
  const JobCollective& of_job = run_.calls.job().collectives[collective];
  return partition.of_nics && !of_job.is_p2p() &&
         run_.host.AreAllOpen(of_job.communicator, run_.plans.ScheduleOf(collective));
}

// Returns the state in which the partition is by its number; kStateUnknown if it is not quiescent,
// or has none. It is known without a visit if a replay has left it, and its instants have passed.
PartitionReplayer::Rest PartitionReplayer::NumberedRest(PartitionIndex number) {
  const Partition& partition = run_.map.partition(number);
  Activity& activity = activities_[number];
  LastEnd& last = activity.last;
  const bool is_settled = last.state != EpisodeCache::kStateUnknown &&
                          last.settled_ps <= run_.engine.NowPs() && !partition.is_faulty;
  if (is_settled && mode_ != ReplayCacheMode::kVerify) {
    const auto settled = activity.settled_states.find(last.state);
    if (settled != activity.settled_states.end()) {
      assert([&] {
        const Rest rest = RestOf(partition, true, false);
        return rest.is_quiescent && cache_.NumberOf(rest.state) == settled->second;
      }());
      ++activity.misses;
      return {.number = settled->second};
    }
  }
  // A hit compares states; counts are needed where something is simulated.
  Rest rest = RestOf(partition, true, mode_ == ReplayCacheMode::kVerify);
  if (!rest.is_quiescent) return {};
  ++activity.misses;
  rest.number = cache_.NumberOf(rest.state);
  if (is_settled && rest.number != EpisodeCache::kStateUnknown) {
    const auto known = activity.settled_states.try_emplace(last.state, rest.number).first;
    SIM_CHECK(known->second == rest.number,
              "a partition is in another state than the one that its last episode left");
  }
  return rest;
}

// The episode that begins in the state with these calls.
uint32_t PartitionReplayer::FindKnown(const Partition& partition,
                                      const std::vector<EpisodeCall>& calls, uint32_t state) {
  const EpisodeCall& first = calls.front();
  std::vector<uint32_t>& known =
      cache_.Find(state, partition.PlaceOf(first.call.gpu()), run_.numbers.Of(first.call));
  const auto is_call = [&](const EpisodeOperation& stored, const EpisodeCall& call) {
    return stored.place == partition.PlaceOf(call.call.gpu()) &&
           stored.begin_ps == call.begin_ps - first.begin_ps &&
           stored.plan == run_.numbers.Of(call.call);
  };
  const auto found = std::ranges::find_if(known, [&](uint32_t id) {
    const Episode& episode = cache_.episode(id);
    return episode.begin_state == state && std::ranges::equal(episode.operations, calls, is_call);
  });
  if (found == known.end()) return kNone;
  std::rotate(known.begin(), found, found + 1);
  return known.front();
}

// Returns true if nothing can affect the partition before all instants in the episode's last state
// have passed, but for collectives of the partition, which may begin at GPUs that are at rest.
bool PartitionReplayer::CanReplay(PartitionIndex number, const std::vector<EpisodeCall>& calls,
                                  const Episode& episode, int64_t disturbance_ps) {
  const Partition& partition = run_.map.partition(number);
  const int64_t settled_ps =
      episode.duration_ps + cache_.state(episode.end_state).instants_ahead_ps;
  // Aborts are known this long ahead.
  if (settled_ps >= kAbortNoticePs) return false;
  for (size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i].call;
    const auto is_of_partition = [&](const JobOperation& operation) {
      return partition.of_nics ? run_.map.UsesNics(call.rank, operation)
                               : run_.map.UsesNvlinks(call.rank, operation);
    };
    const std::optional<NextOperation> next =
        NextOf(run_.calls.job().operations[call.rank], call.index, is_of_partition);
    if (!next) continue;
    const int64_t unsettled_ps = settled_ps - episode.operations[i].end_ps;
    if (next->gap_ps + run_.map.least_launch_ps() >= unsettled_ps) continue;
    const Call follower{call.rank, next->index};
    const CollectiveIndex collective = run_.calls.CollectiveNumberOf(follower);
    const int64_t since_end_ps = next->gap_ps + run_.plans.CostsOf(collective).launch_latency_ps;
    if (since_end_ps >= unsettled_ps) continue;
    const int64_t launch_ps = episode.operations[i].end_ps + since_end_ps;
    if (!MayOverlap(number, follower, launch_ps, episode, i)) return false;
  }
  const int64_t settled_at_ps = calls.front().begin_ps + settled_ps;
  return settled_at_ps < disturbance_ps && !MayBeTouched(partition, calls, settled_at_ps);
}

// Returns true if a call may begin at the GPU of the episode's operation at that time since the
// episode's begin, although the partition is not at rest yet: it is one of a collective of the
// partition, and at rest are all GPUs with which it has connections. All such begins are a
// consistent cut (Chandy, Lamport: Distributed Snapshots, ACM TOCS 3 (1), 1985): nothing that the
// episode sends crosses it, so that what follows depends on the state in which the episode ends,
// and not on when it ends elsewhere.
bool PartitionReplayer::MayOverlap(PartitionIndex number, const Call& call, int64_t time_ps,
                                   const Episode& episode, size_t operation) {
  if (episode.rests_ps.empty() || cache_.state(episode.end_state).instants_ahead_ps > 0) {
    return false;
  }
  const CollectiveIndex collective = run_.calls.CollectiveNumberOf(call);
  return time_ps >= episode.rests_ps[operation] && run_.map.PartitionOf(call) == number &&
         run_.map.IsOfPartitionAlone(number, collective) &&
         IsOpenOnNics(run_.map.partition(number), collective);
}

// When the next event is that may end the job, or simulated time, or, where faults are to be
// considered, bring one.
int64_t PartitionReplayer::NextDisturbancePs(bool by_faults) const {
  int64_t next_ps = kTimeEndPs;
  run_.engine.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    const PendingMeans pending = run_.engine.TraitsOf(event_class).pending;
    if (pending == PendingMeans::kAnything || pending == PendingMeans::kObserver ||
        (pending == PendingMeans::kChange && by_faults)) {
      next_ps = std::min(next_ps, time_ps);
    }
  });
  return next_ps;
}

bool PartitionReplayer::MayBeTouched(const Partition& partition,
                                     const std::vector<EpisodeCall>& calls, int64_t until_ps) {
  if (!partition.of_nics) return false;
  std::vector<Call> own;
  for (const EpisodeCall& call : calls) own.push_back(call.call);
  return run_.neighbours.MayTouch(partition, own, run_.engine.NowPs(), until_ps);
}

// --- Ends ----------------------------------------------------------------------------------------

void PartitionReplayer::OnEnd(RunningIndex operation) {
  const PartitionIndex number = PartitionOf(operation);
  if (number == PartitionIndex::kNone) return;
  const Partition& partition = run_.map.partition(number);
  Activity& activity = activities_[number];
  const StreamRunner::Running& running = run_.streams.running()[operation];
  const EpisodePlace place = partition.PlaceOf(running.call.gpu());
  std::erase(activity.operations, operation);
  if (running.replayed_end_ps == 0) {
    --activity.launched;
    activity.made.insert(MadeKey(run_.numbers.Of(running.call), place));
  }
  CurrentEpisode* const episode = EpisodeOf(number, operation);
  if (episode == nullptr) return;
  ++episode->calls_ended;
  if (!episode->is_replayed) episode->ends_ps[place] = run_.engine.NowPs() - episode->begin_ps;
  if (episode->calls_ended < partition.gpus.size()) return;
  if (activity.episode && episode == &*activity.episode) {
    Finish(number, *episode);
    activity.episode.reset();
  } else {
    EndReplay(partition);
    activity.ending.erase(activity.ending.begin() + (episode - activity.ending.data()));
  }
}

PartitionReplayer::CurrentEpisode* PartitionReplayer::EpisodeOf(PartitionIndex number,
                                                                RunningIndex operation) {
  Activity& activity = activities_[number];
  const CollectiveIndex collective = CollectiveOf(operation);
  if (activity.episode && activity.episode->collective == collective) return &*activity.episode;
  const auto ending = std::ranges::find(activity.ending, collective, &CurrentEpisode::collective);
  return ending == activity.ending.end() ? nullptr : &*ending;
}

void PartitionReplayer::Finish(PartitionIndex number, const CurrentEpisode& episode) {
  const Partition& partition = run_.map.partition(number);
  if (episode.is_replayed) {
    PutEnd(partition, episode);
    EndReplay(partition);
  } else {
    CheckEpisode(partition, episode);
  }
  if (partition.of_nics) return;  // calls of other partitions use them, too
  const uint32_t state = cache_.episode(episode.known).end_state;
  activities_[number].last = {
      .state = state,
      .settled_ps = run_.engine.NowPs() + cache_.state(state).instants_ahead_ps,
  };
}

// Puts the state that a replayed episode leaves, and adds what it has counted. Both are one visit,
// because positions in streams of messages are counted.
void PartitionReplayer::PutEnd(const Partition& partition, const CurrentEpisode& episode) {
  const Episode& known = cache_.episode(episode.known);
  const int64_t now_ps = run_.engine.NowPs();
  counting_(episode.begin_ps, now_ps, [&] {
    Apply(partition, StateArchive(cache_.state(known.end_state), known.changes, now_ps));
  });
}

void PartitionReplayer::EndReplay(const Partition& partition) {
  --replayed_;
  run_.host.EndIndependent(partition);
}

// --- Changes of the job --------------------------------------------------------------------------

void PartitionReplayer::Halt(PartIndex part) {
  for (PartitionIndex number{}; number < activities_.size(); ++number) {
    if (PartOf(number) != part) continue;
    Activity& activity = activities_[number];
    // Only what is not known ahead halts a part so: a limit in real time.
    if (IsReplayed(activity)) throw SharedBuffers::NotIndependent();
    activity.episode.reset();
    activity.operations.clear();
    activity.launched = 0;
    activity.made.clear();
    activity.last = {};
    activity.settled_states.clear();
  }
}

void PartitionReplayer::Abort(PartIndex part) {
  for (PartitionIndex number{}; number < activities_.size(); ++number) {
    if (PartOf(number) != part) continue;
    SIM_CHECK(!IsReplayed(activities_[number]), "a job ends in the middle of what is replayed");
    activities_[number].episode.reset();
  }
}

void PartitionReplayer::Rebuild() {
  SIM_CHECK(replayed_ == 0, "ranks move while a partition is replayed");
  cache_ = {};
  activities_.assign(run_.map.count(), {});
  for (PartitionIndex number{}; number < activities_.size(); ++number) {
    activities_[number].is_on_detour = IsOnDetour(run_.map.partition(number));
  }
  const std::vector<StreamRunner::Running>& running = run_.streams.running();
  partition_of_operation_.resize(running.size(), PartitionIndex::kNone);
  for (RunningIndex operation{}; operation < running.size(); ++operation) {
    if (running[operation].is_free()) continue;
    const PartitionIndex number = run_.map.PartitionOf(running[operation].call);
    partition_of_operation_[operation] = number;
    if (number == PartitionIndex::kNone) continue;
    activities_[number].operations.push_back(operation);
    if (running[operation].is_launched) ++activities_[number].launched;
  }
}

void PartitionReplayer::OnDetour(std::span<const GpuIndex> gpus) {
  gpus_on_detours_.insert(gpus.begin(), gpus.end());
  for (PartitionIndex number{}; number < activities_.size(); ++number) {
    Activity& activity = activities_[number];
    if (activity.is_on_detour || !IsOnDetour(run_.map.partition(number))) continue;
    activity.is_on_detour = true;
    if (IsReplayed(activity)) throw SharedBuffers::NotIndependent();
    activity.episode.reset();
  }
}

bool PartitionReplayer::IsOnDetour(const Partition& partition) const {
  return std::ranges::any_of(gpus_on_detours_,
                             [&](GpuIndex gpu) { return run_.map.IsMetAt(partition, gpu); });
}

}  // namespace railyard
