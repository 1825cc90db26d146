// SPDX-License-Identifier: GPL-2.0-only
// What a partition is and what calls do there: simulated ahead, before everything else that is to
// come; and compared, where it is simulated in its place as well.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"

namespace railyard {

void ReplayEngine::VisitPartition(const Partition& partition, StateArchive& archive) {
  if (partition.of_nics) {
    executor_->VisitNics(partition.nics, archive);
    return;
  }
  network_.VisitNvlinks(partition.links, archive);
  executor_->VisitGpus(partition.gpus, archive);
}

// What others may count at the same time: a section of its own.
void ReplayEngine::VisitCountersOf(const Partition& partition, StateArchive& archive) {
  archive.Section();
  if (partition.of_nics) executor_->VisitCountersOfNics(archive);
}

// What it is joins the state that an episode begins in; what is known of the end is put there only
// where it is the same.
PartitionRest ReplayEngine::RestOf(const Partition& partition, bool is_begin) {
  StateArchive archive(engine_.NowPs());
  VisitPartition(partition, archive);
  if (!archive.is_at_rest()) return {};
  if (is_begin) {
    archive.Constant(partition.of_nics ? 1 : 0);
    archive.Constant(partition.shape);
    archive.Constant(partition.of_nics
                         ? partition.nics.identity
                         : executor_->connection_table().IdentityOfGpus(partition.gpus));
  }
  VisitCountersOf(partition, archive);
  return {.is_at_rest = true,
          .state = archive.TakeState(),
          .counts = archive.TakeCounts(),
          .unrepeatable = archive.unrepeatable()};
}

// --- Ahead ---------------------------------------------------------------------------------------

// Precondition: the partition is at rest, and the first of the calls runs now. What the calls would
// do there; kNone: that is no episode.
uint32_t ReplayEngine::RecordAhead(const Partition& partition,
                                   const std::vector<PartitionCall>& calls,
                                   const PartitionRest& rest) {
  const std::optional<DeviceId> at = partition.nics.at;
  std::vector<uint8_t> timers;
  if (at) {
    if (!network_.BeginAhead(*at, partition.nics.links)) return kNone;
    timers = executor_->TakeTimers(partition.nics);
  }
  SpeculativeEpisode ahead{
      .partition = &partition, .begin_ps = calls.front().begin_ps, .calls_left = calls.size()};
  Episode& episode = ahead.episode;
  episode.begin_state = rest.number;
  std::vector<PathTracer::Kept> paths;
  if (rules_.keep_paths) {
    episode.paths.resize(calls.size());
    paths = executor_->PathsAmong(partition.gpus);
  }
  ahead_ = &ahead;
  engine_.RunAhead([&] {
    for (const PartitionCall& call : calls) {
      const uint32_t id = NewRunning(call.rank, call.number, call.begin_ps);
      running_[id].in_partition = static_cast<uint32_t>(episode.operations.size());
      episode.operations.push_back({.rank = PlaceOf(partition, call.rank),
                                    .plan = PlanNumberOf(call.rank, call.number),
                                    .begin_ps = call.begin_ps - ahead.begin_ps});
      const JobCollective& collective = job_.collectives[CollectiveOf(running_[id])];
      Schedule(id, call.begin_ps + CostsOf(collective).launch_latency_ps);
    }
  });
  ahead_ = nullptr;
  SIM_CHECK(ahead.calls_left == 0, "what was simulated ahead has not come to its end");
  if (at) {
    network_.EndAhead(*at);
    executor_->PutTimers(partition.nics, timers);
  }
  if (rules_.keep_paths) executor_->PutPathsAmong(partition.gpus, paths);
  PutBack(partition, rest);
  const bool is_repeatable = ahead.end.is_at_rest && ahead.end.unrepeatable == rest.unrepeatable &&
                             HasPlacesOf(rest.counts, ahead.end.counts);
  if (!is_repeatable) return kNone;
  episode.end_state = partition_cache_.NumberOf(std::move(ahead.end.state));
  if (episode.end_state == EpisodeCache::kStateUnknown) return kNone;
  episode.changes = ChangesBetween(rest.counts, ahead.end.counts);
  return partition_cache_.Add(std::move(episode));
}

void ReplayEngine::EndAhead(uint32_t id) {
  const Running& running = running_[id];
  SpeculativeEpisode& ahead = *ahead_;
  const Partition& partition = *ahead.partition;
  const int64_t now_ps = engine_.NowPs();
  ahead.episode.operations[running.in_partition].end_ps = now_ps - ahead.begin_ps;
  if (rules_.keep_paths) {
    CriticalPath& path = ahead.episode.paths[running.in_partition];
    path = running.path;
    path.origin_ps -= ahead.begin_ps;
    path.Rename([&](uint32_t gpu) { return PlaceOf(partition, gpu); });
  }
  FreeRunning(id);
  if (--ahead.calls_left > 0) return;
  ahead.episode.duration_ps = now_ps - ahead.begin_ps;
  ahead.end = RestOf(partition, false);
}

// What was simulated ahead has come to rest: as if it had not been.
void ReplayEngine::PutBack(const Partition& partition, const PartitionRest& rest) {
  const auto add = [&](const RestCountChanges& changes) {
    StateArchive archive(changes);
    VisitPartition(partition, archive);
    VisitCountersOf(partition, archive);
  };
  const PartitionRest after = RestOf(partition, false);
  if (!after.is_at_rest || !HasPlacesOf(after.counts, rest.counts)) {
    throw FabricNetwork::NotApart();
  }
  StateArchive put(rest.state, engine_.NowPs());
  VisitPartition(partition, put);
  add(ChangesBetween(after.counts, rest.counts));
  const PartitionRest again = RestOf(partition, true);
  // What was lost, or timed out, cannot be taken back.
  if (again.unrepeatable != rest.unrepeatable) throw FabricNetwork::NotApart();
  SIM_CHECK(again.is_at_rest && again.state == rest.state && again.counts == rest.counts,
            "a partition is not as it was before something was simulated ahead");
}

// What was simulated is what would have been replayed.
void ReplayEngine::CheckEpisode(Partition& partition) {
  const PartitionEpisode& episode = *partition.episode;
  const Episode& expected = partition_cache_.episode(episode.known);
  const PartitionRest rest = RestOf(partition, false);
  const bool ends_as_told = std::ranges::all_of(
      expected.operations,
      [&](const EpisodeOperation& told) { return episode.ends_ps[told.rank] == told.end_ps; });
  // Others may have counted meanwhile, and of this partition is the first part alone.
  const auto is_own = [](const auto& change) { return change.first >> kSectionShift == 0; };
  const auto own = [&](RestCountChanges changes) {
    std::erase_if(changes, std::not_fn(is_own));
    return changes;
  };
  SIM_CHECK(rest.is_at_rest && ends_as_told &&
                rest.state == partition_cache_.state(expected.end_state) &&
                own(ChangesBetween(episode.begin_counts, rest.counts)) == own(expected.changes),
            fmt::format("a collective of {} GPUs at {} ps is not what would have been replayed",
                        expected.operations.size(), episode.begin_ps));
}

}  // namespace railyard
