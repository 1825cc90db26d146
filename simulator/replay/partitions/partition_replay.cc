// SPDX-License-Identifier: GPL-2.0-only
// Partitions (partition.h). When one is at rest and a collective of its GPUs alone runs there:
// replays the episode that is known; else simulates it ahead (partition_speculation.cc), puts the
// partition back as it was, and replays that. Partitions that are alike share what is known, in
// which GPUs are numbered by their places.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// A partition that has not repeated itself in so many episodes is simulated without looking for
// more; so is one of which so many were simulated ahead and could not be replayed then.
constexpr uint32_t kMissesMax = 1024;
constexpr uint32_t kUnusedMax = 3;

}  // namespace

// --- Begins --------------------------------------------------------------------------------------

bool ReplayEngine::BeginInPartition(uint32_t id) {
  Running& running = running_[id];
  running.partition = PartitionOf(running);
  if (running.partition == kNone) return false;
  Partition& partition = partitions_[running.partition];
  partition.calls.push_back(id);
  const std::optional<PartitionEpisode>& episode = partition.episode;
  if (!episode || !episode->is_replayed || episode->collective != CollectiveOf(running)) {
    return false;
  }
  Follow(id);
  return true;
}

// The call, which begins or has begun, is one of those that are replayed: it ends as told.
void ReplayEngine::Follow(uint32_t id) {
  Running& running = running_[id];
  const Partition& partition = partitions_[running.partition];
  const PartitionEpisode& episode = *partition.episode;
  const Episode& known = partition_cache_.episode(episode.known);
  const uint32_t place = PlaceOf(partition, running.rank);
  const auto told = std::ranges::find(known.operations, place, &EpisodeOperation::rank);
  SIM_CHECK(told != known.operations.end() && told->begin_ps == running.start_ps - episode.begin_ps,
            "a call that is replayed began otherwise");
  times_[episode.collective].replayed = !episode.is_new;
  running.launched = true;
  running.told_end_ps = episode.begin_ps + told->end_ps;
  if (rules_.keep_paths) {
    running.path = known.paths[static_cast<size_t>(told - known.operations.begin())];
    running.path.origin_ps += episode.begin_ps;
    running.path.Rename([&](uint32_t at) { return partition.gpus[at]; });
  }
  Schedule(id, running.told_end_ps);
}

bool ReplayEngine::LaunchInPartition(uint32_t id) {
  const uint32_t number = running_[id].partition;
  if (number == kNone) {
    CheckIsApart(running_[id]);
    return false;
  }
  Partition& partition = partitions_[number];
  std::optional<PartitionEpisode>& episode = partition.episode;
  const uint32_t collective = CollectiveOf(running_[id]);
  if (episode && episode->collective != collective) {
    if (episode->is_replayed) throw FabricNetwork::NotApart();
    episode.reset();
  }
  if (!episode && partition.launched == 0) BeginPartitionEpisode(number, collective);
  if (running_[id].told_end_ps != 0) return true;
  ++partition.launched;
  CheckIsApart(running_[id]);
  return false;
}

void ReplayEngine::BeginPartitionEpisode(uint32_t number, uint32_t collective) {
  Partition& partition = partitions_[number];
  if (!IsOfPartitionAlone(number, collective) || !partition.is_in_turn || partition.is_on_detour ||
      partition.misses > kMissesMax || IsProgressWatched() ||
      (executor_->failover() != nullptr && executor_->failover()->MayMoveSome())) {
    return;
  }
  // A GPU that stands still does not end what it has begun.
  const auto stands_still = [this](uint32_t gpu) { return executor_->SpeedOfGpu(gpu) == 0; };
  if (std::ranges::any_of(partition.gpus, stands_still)) return;
  const std::vector<PartitionCall> calls = CallsOf(partition, collective);
  const int64_t least_end_ps = calls.empty() ? 0 : calls.front().begin_ps + BoundOf(collective);
  if (calls.empty() || calls.back().begin_ps > kTimeEndPs ||
      least_end_ps >= NextDisturbancePs(partition.is_faulty) ||
      least_end_ps >= calls.front().begin_ps + kAbortNoticePs ||
      MayBeTouched(partition, calls, least_end_ps)) {
    return;
  }
  if (partition.of_nics &&
      partition.nics.version != executor_->connection_table().network_version()) {
    partition.nics = executor_->NicGroupOf(partition.gpus);
  }
  PartitionRest rest = RestOf(partition, true);
  if (!rest.is_at_rest) return;
  ++partition.misses;
  rest.number = partition_cache_.NumberOf(rest.state);
  if (rest.number == EpisodeCache::kStateUnknown) return;
  PartitionEpisode episode{.collective = collective, .begin_ps = calls.front().begin_ps};
  episode.known = FindKnown(partition, calls, rest.number);
  if (episode.known == kNone) {
    if (partition.unused > kUnusedMax) return;
    episode.known = RecordAhead(partition, calls, rest);
    if (episode.known == kNone) return;
    episode.is_new = true;
  } else {
    partition.misses = 0;
  }
  const bool can_replay = CanReplay(partition, calls, partition_cache_.episode(episode.known));
  if (episode.is_new) partition.unused = can_replay ? 0 : partition.unused + 1;
  if (!can_replay) return;
  if (rules_.cache == ReplayCacheMode::kVerify) {
    episode.begin_counts = std::move(rest.counts);
    episode.ends_ps.resize(partition.gpus.size());
    partition.episode = std::move(episode);
    return;
  }
  if (partition.of_nics) {
    partition.apart_at = partition.nics.at.value();
    if (!network_.BeginApart(partition.apart_at)) return;
  }
  ++replayed_partitions_;
  episode.is_replayed = true;
  partition.episode = std::move(episode);
  for (const PartitionCall& call : calls) {
    if (call.running != kNone) Follow(call.running);
  }
}

// Those of the collective, in the order in which they begin; none if it is not known yet when all
// do, something else goes on, or some of their connections have not been opened.
std::vector<PartitionCall> ReplayEngine::CallsOf(const Partition& partition,
                                                 uint32_t collective) const {
  std::vector<PartitionCall> calls;
  for (const uint32_t id : partition.calls) {
    const Running& running = running_[id];
    if (CollectiveOf(running) != collective) return {};
    calls.push_back({running.start_ps, NumberOf(running), running.rank, id});
  }
  for (const Pending& pending : pending_) {
    const uint32_t index = pending.number - first_number_[pending.rank];
    if (CollectiveOf(Call{pending.rank, index}) != collective) continue;
    calls.push_back({pending.begin_ps, pending.number, pending.rank, kNone});
  }
  std::unordered_set<uint32_t> places;
  for (const PartitionCall& call : calls) {
    const uint32_t place = PlaceOf(partition, call.rank);
    places.insert(place);
    if (!partition.made.contains(MadeKey(PlanNumberOf(call.rank, call.number), place))) return {};
  }
  if (calls.size() != partition.gpus.size() || places.size() != calls.size()) return {};
  std::ranges::sort(calls, [](const PartitionCall& a, const PartitionCall& b) {
    return std::pair(a.begin_ps, a.number) < std::pair(b.begin_ps, b.number);
  });
  return calls;
}

uint32_t ReplayEngine::FindKnown(const Partition& partition,
                                 const std::vector<PartitionCall>& calls, uint32_t state) {
  const PartitionCall& first = calls.front();
  std::vector<uint32_t>& known = partition_cache_.Find(state, PlaceOf(partition, first.rank),
                                                       PlanNumberOf(first.rank, first.number));
  const auto found = std::ranges::find_if(known, [&](uint32_t id) {
    const Episode& episode = partition_cache_.episode(id);
    return episode.begin_state == state &&
           std::ranges::equal(episode.operations, calls,
                              [&](const EpisodeOperation& told, const PartitionCall& call) {
                                return told.rank == PlaceOf(partition, call.rank) &&
                                       told.begin_ps == call.begin_ps - first.begin_ps &&
                                       told.plan == PlanNumberOf(call.rank, call.number);
                              });
  });
  if (found == known.end()) return kNone;
  std::rotate(known.begin(), found, found + 1);
  return known.front();
}

// --- Ends ----------------------------------------------------------------------------------------

void ReplayEngine::EndInPartition(uint32_t id) {
  const Running& running = running_[id];
  if (running.partition == kNone) return;
  Partition& partition = partitions_[running.partition];
  std::erase(partition.calls, id);
  const bool was_told = running.told_end_ps != 0;
  if (!was_told) {
    --partition.launched;
    partition.made.insert(
        MadeKey(PlanNumberOf(running.rank, NumberOf(running)), PlaceOf(partition, running.rank)));
  }
  if (!partition.episode || partition.episode->collective != CollectiveOf(running)) return;
  PartitionEpisode& episode = *partition.episode;
  ++episode.calls_ended;
  if (!episode.is_replayed) {
    episode.ends_ps[PlaceOf(partition, running.rank)] = engine_.NowPs() - episode.begin_ps;
  }
  if (episode.calls_ended < partition.gpus.size()) return;
  if (episode.is_replayed) {
    FinishReplay(partition);
  } else {
    CheckEpisode(partition);
  }
  partition.episode.reset();
}

void ReplayEngine::FinishReplay(Partition& partition) {
  const Episode& known = partition_cache_.episode(partition.episode->known);
  StateArchive put(partition_cache_.state(known.end_state), engine_.NowPs());
  VisitPartition(partition, put);
  StateArchive add(known.changes);
  VisitPartition(partition, add);
  VisitCountersOf(partition, add);
  --replayed_partitions_;
  if (partition.of_nics) network_.EndApart(partition.apart_at);
}

// The part is halted: none of its calls runs any more, and its connections are closed.
void ReplayEngine::ForgetCallsOf(uint32_t part) {
  for (Partition& partition : partitions_) {
    if (part_of_rank_[partition.gpus.front()] != part) continue;
    // Only what is not known ahead halts a part so: a limit in real time.
    if (partition.episode && partition.episode->is_replayed) throw FabricNetwork::NotApart();
    partition.episode.reset();
    partition.calls.clear();
    partition.launched = 0;
    partition.made.clear();
  }
}

void ReplayEngine::ForgetEpisodesOf(uint32_t part) {
  for (Partition& partition : partitions_) {
    if (!partition.episode || part_of_rank_[partition.gpus.front()] != part) continue;
    SIM_CHECK(!partition.episode->is_replayed, "a job ends in the middle of what is replayed");
    partition.episode.reset();
  }
}

}  // namespace railyard
