// SPDX-License-Identifier: GPL-2.0-only
// Simulates the calls of an episode ahead of all other pending events, and compares a known episode
// with one that is simulated in its place.
#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/partitions/partition_replayer.h"
#include "simulator/state/state_difference.h"

namespace railyard {

// The partition's identity is part of the state in which an episode begins; a stored end is applied
// only if it is the same. Counters that others may increase at the same time have a separate
// section.
PartitionReplayer::Rest PartitionReplayer::RestOf(const Partition& partition, bool is_begin,
                                                  bool with_counts) {
  const int64_t now_ps = run_.engine.NowPs();
  StateArchive archive = with_counts ? StateArchive(now_ps) : StateArchive::OfState(now_ps);
  run_.host.Visit(partition, archive);
  if (!archive.is_quiescent()) return {};
  if (is_begin) {
    archive.Constant(partition.of_nics ? 1 : 0);
    archive.Constant(partition.shape);
    archive.Constant(run_.host.IdentityOf(partition));
  }
  archive.Section();
  run_.host.VisitCounters(partition, archive);
  return {.is_quiescent = true,
          .state = archive.TakeState(),
          .counts = archive.TakeCounts(),
          .unrepeatable = archive.unrepeatable()};
}

// Returns state and counts of a partition that is known to be in the state of that number.
PartitionReplayer::Rest PartitionReplayer::CountedRest(const Partition& partition, uint32_t state) {
  Rest rest = RestOf(partition, true);
  rest.number = rest.is_quiescent ? cache_.NumberOf(rest.state) : EpisodeCache::kStateUnknown;
  SIM_CHECK(rest.number == state, "a partition is in another state than the one known of it");
  return rest;
}

void PartitionReplayer::Apply(const Partition& partition, StateArchive archive) {
  run_.host.Visit(partition, archive);
  archive.Section();
  run_.host.VisitCounters(partition, archive);
}

// --- Ahead ---------------------------------------------------------------------------------------

// Returns the episode of what the calls would do there, kNone if that is none. Precondition: the
// partition is quiescent, and the first of the calls runs now.
uint32_t PartitionReplayer::RecordAhead(PartitionIndex number,
                                        const std::vector<EpisodeCall>& calls, const Rest& rest) {
  const Partition& partition = run_.map.partition(number);
  if (!run_.host.BeginAhead(partition)) return kNone;
  const int64_t begin_ps = calls.front().begin_ps;
  Episode episode{.begin_state = rest.number, .partition = number};
  if (keep_paths_) episode.paths.resize(calls.size());
  std::vector<StreamRunner::AheadCall> ahead;
  for (const EpisodeCall& call : calls) {
    ahead.push_back({.call = call.call, .begin_ps = call.begin_ps});
    episode.operations.push_back({.place = partition.PlaceOf(call.call.gpu()),
                                  .plan = run_.numbers.Of(call.call),
                                  .begin_ps = call.begin_ps - begin_ps});
  }
  size_t calls_left = calls.size();
  std::vector<int64_t> done_ps(calls.size(), kNeverPs);  // by operation
  Rest end;
  run_.streams.RunAhead(ahead, [&](size_t call, const CriticalPath& path) {
    const int64_t since_begin_ps = run_.engine.NowPs() - begin_ps;
    episode.operations[call].end_ps = since_begin_ps;
    if (keep_paths_) {
      episode.paths[call] = path.Renamed([&](GpuIndex gpu) { return partition.PlaceOf(gpu); });
      episode.paths[call].origin_ps -= begin_ps;
    }
    for (size_t i = 0; partition.of_nics && i < calls.size(); ++i) {
      const EpisodeOperation& operation = episode.operations[i];
      const bool has_ended = operation.end_ps != 0;
      if (has_ended && done_ps[i] == kNeverPs && run_.host.IsAtRest(partition, operation.place)) {
        done_ps[i] = since_begin_ps;
      }
    }
    if (--calls_left > 0) return;
    episode.duration_ps = since_begin_ps;
    end = RestOf(partition, false);
  });
  SIM_CHECK(calls_left == 0, "what was simulated ahead has not come to its end");
  run_.host.EndAhead(partition);
  PutBack(partition, rest);
  const bool is_repeatable = end.is_quiescent && end.unrepeatable == rest.unrepeatable &&
                             HasPlacesOf(rest.counts, end.counts);
  if (!is_repeatable) return kNone;
  episode.end_state = cache_.NumberOf(std::move(end.state));
  if (episode.end_state == EpisodeCache::kStateUnknown) return kNone;
  episode.changes = ChangesBetween(rest.counts, end.counts);
  if (partition.of_nics) episode.rests_ps = RestsOf(partition, episode, done_ps);
  return cache_.Add(std::move(episode));
}

// Returns from when on each operation's GPU, and those with which it exchanges, are at rest, by
// when each of them is.
std::vector<int64_t> PartitionReplayer::RestsOf(const Partition& partition, const Episode& episode,
                                                const std::vector<int64_t>& done_ps) const {
  std::vector<int64_t> rests_ps = done_ps;
  for (size_t i = 0; i < rests_ps.size(); ++i) {
    for (const EpisodePlace peer : run_.host.PeersOf(partition, episode.operations[i].place)) {
      rests_ps[i] = std::max(rests_ps[i], done_ps[episode.OperationAt(peer)]);
    }
  }
  return rests_ps;
}

// The calls that were simulated ahead have come to rest: all is as if they had not been.
void PartitionReplayer::PutBack(const Partition& partition, const Rest& rest) {
  const Rest after = RestOf(partition, false);
  if (!after.is_quiescent || !HasPlacesOf(after.counts, rest.counts)) {
    throw SharedBuffers::NotIndependent();
  }
  const CountChanges back = ChangesBetween(after.counts, rest.counts);
  Apply(partition, StateArchive(rest.state, back, run_.engine.NowPs()));
  const Rest again = RestOf(partition, true);
  // A loss or a timeout cannot be taken back.
  if (again.unrepeatable != rest.unrepeatable) throw SharedBuffers::NotIndependent();
  SIM_CHECK(again.is_quiescent && again.state == rest.state && again.counts == rest.counts,
            "a partition is not as it was before something was simulated ahead");
}

// Checks that the simulation did what would have been replayed.
void PartitionReplayer::CheckEpisode(const Partition& partition, const CurrentEpisode& episode) {
  const Episode& expected = cache_.episode(episode.known);
  const Rest rest = RestOf(partition, false);
  const bool ends_as_expected =
      std::ranges::all_of(expected.operations, [&](const EpisodeOperation& stored) {
        return episode.ends_ps[stored.place] == stored.end_ps;
      });
  // Others may have counted meanwhile, and of this partition is the first part alone.
  const auto is_own = [](const auto& change) { return change.first >> kSectionShift == 0; };
  const auto own = [&](CountChanges changes) {
    std::erase_if(changes, std::not_fn(is_own));
    return changes;
  };
  const StateSnapshot& expected_state = cache_.state(expected.end_state);
  const CountChanges changes = own(ChangesBetween(episode.begin_counts, rest.counts));
  const CountChanges expected_changes = own(expected.changes);
  const StateWalk walk = [&](StateArchive& archive) { run_.host.Visit(partition, archive); };
  SIM_CHECK(rest.is_quiescent && ends_as_expected && rest.state == expected_state &&
                changes == expected_changes,
            fmt::format("a collective of {} GPUs at {} ps is not what would have been replayed: "
                        "{}; {}; {}",
                        expected.operations.size(), episode.begin_ps,
                        ends_as_expected ? "it ends as expected" : "it ends at another instant",
                        DescribeDifference(walk, rest.state, expected_state),
                        DescribeDifference(walk, changes, expected_changes)));
  ++episodes_verified_;
}

}  // namespace railyard
