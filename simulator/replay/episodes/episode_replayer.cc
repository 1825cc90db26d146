// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/episodes/episode_replayer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/check.h"
#include "simulator/engine/look.h"
#include "simulator/state/state_difference.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// A job without a repetition in this many episodes is simulated without further look-ups.
constexpr uint32_t kEpisodeMissesMax = 4096;

// After this many gaps without rest an episode is not examined in the next: it cannot be a run's
// last.
constexpr uint32_t kGapsMax = 1024;

// Calls ahead of the one that is replayed.
constexpr size_t kPrefetched = 8;

// In an episode of the whole network, places are the numbers of the job's GPUs.
EpisodePlace PlaceOfGpu(GpuIndex gpu) { return EpisodePlace{uint32_t{gpu}}; }
GpuIndex GpuOfPlace(EpisodePlace place) { return GpuIndex{uint32_t{place}}; }

// "operation 3, of rank 5, took from 0 to 12 ps, not from 0 to 13": the first that differs.
std::string DescribeDifference(const std::vector<EpisodeOperation>& found,
                               const std::vector<EpisodeOperation>& expected) {
  if (found.size() != expected.size()) {
    return fmt::format("{} operations, not {}", found.size(), expected.size());
  }
  const auto [a, b] = std::ranges::mismatch(found, expected);
  if (a == found.end()) return {};
  return fmt::format("operation {}, of rank {}, took from {} to {} ps, not from {} to {}",
                     a - found.begin(), a->place, a->begin_ps, a->end_ps, b->begin_ps, b->end_ps);
}

std::string JoinDifferences(std::vector<std::string> differences) {
  std::erase(differences, std::string());
  return fmt::format("{}", fmt::join(differences, "; "));
}

// `difference` says where the two differ; it is asked only where they do.
template <class Difference>
void CheckIsAsRecorded(const EpisodeRecording& recording, bool holds,
                       const Difference& difference) {
  SIM_CHECK(holds, fmt::format("an episode of {} operations at {} ps is not what would have been "
                               "replayed: {}",
                               recording.episode.operations.size(), recording.begin.time_ps,
                               difference()));
}

}  // namespace

void EpisodeReplayer::LookAgain() {
  mode_ = wanted_mode_;
  misses_ = 0;
}

// --- Rest ----------------------------------------------------------------------------------------

// Only beginnings, and what passes without effect or is known to be due, are on the wheel.
bool EpisodeReplayer::IsQuiet() {
  bool is_quiet = true;
  next_disturbance_ps_ = kTimeEndPs;
  run_.engine.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    switch (run_.engine.TraitsOf(event_class).pending) {
      case PendingMeans::kNothing:
      case PendingMeans::kObserver:
        break;
      case PendingMeans::kChange:
      case PendingMeans::kAnything:
        next_disturbance_ps_ = std::min(next_disturbance_ps_, time_ps);
        break;
      case PendingMeans::kUnderWay:
        is_quiet = false;
    }
  });
  return is_quiet;
}

std::optional<NetworkRest> EpisodeReplayer::RestNow() {
  const int64_t now_ps = run_.engine.NowPs();
  StateArchive archive(now_ps);
  run_.state.Visit(archive);
  if (!archive.is_quiescent()) return std::nullopt;
  return NetworkRest{.time_ps = now_ps,
                     .state = cache_.NumberOf(archive.TakeState()),
                     .unrepeatable = archive.unrepeatable(),
                     .counts = archive.TakeCounts()};
}

// --- Replay --------------------------------------------------------------------------------------

bool EpisodeReplayer::ReplayFromRest() {
  if (mode_ == ReplayCacheMode::kOff) return false;
  if (!IsQuiet() || run_.streams.has_stopped_computation()) return false;
  const std::optional<NetworkRest> rest = RestNow();
  if (!rest) return false;
  if (mode_ == ReplayCacheMode::kVerify) CheckIdle();
  if (recording_) FinishRecording(*rest);
  if (rest->state == EpisodeCache::kStateUnknown) {
    NoteMiss();
    return false;
  }
  Replayed replayed = ReplayKnown(*rest);
  if (replayed.is_verified) return false;
  if (replayed.episodes.empty()) {
    NoteMiss();
    if (mode_ != ReplayCacheMode::kOff) StartRecording(*rest);
    return false;
  }
  misses_ = 0;
  StateArchive put(cache_.state(replayed.state), replayed.rest_ps);
  run_.state.Visit(put);
  const Episode& last = cache_.episode(replayed.episodes.back());
  const bool is_end = run_.ledger.calls_left() == 0;
  const int64_t until_ps = is_end ? replayed.last_begin_ps + last.LastEndPs() : replayed.rest_ps;
  counting_(rest->time_ps, until_ps, [&] {
    AddCounts(std::move(replayed.episodes));
    if (is_end) EndWith(last, replayed.last_begin_ps);
  });
  return true;
}

EpisodeReplayer::Replayed EpisodeReplayer::ReplayKnown(const NetworkRest& rest) {
  Replayed replayed{
      .episodes = {}, .state = rest.state, .rest_ps = rest.time_ps, .last_begin_ps = rest.time_ps};
  while (!run_.streams.pending().empty()) {
    const int64_t begin_ps = run_.streams.pending().front().begin_ps;
    // Time that passes changes such a state.
    if (begin_ps > replayed.rest_ps && cache_.state(replayed.state).instants_ahead_ps > 0) break;
    const std::optional<uint32_t> known = TryKnown(replayed.state);
    if (!known) break;
    if (mode_ == ReplayCacheMode::kVerify) {
      StartRecording(rest);
      recording_->expected = known;
      recording_->fixed = FixedNow();
      replayed.is_verified = true;
      break;
    }
    const Episode& episode = cache_.episode(*known);
    replayed.episodes.push_back(*known);
    replayed.last_begin_ps = begin_ps;
    if (run_.ledger.calls_left() == 0) break;
    replayed.rest_ps = begin_ps + episode.duration_ps;
    replayed.state = episode.end_state;
    // A job that repeats itself for long is here for long.
    if (LookIfRequested()) break;
  }
  return replayed;
}

// A run ends with its last operation, not with the rest that follows.
void EpisodeReplayer::EndWith(const Episode& episode, int64_t begin_ps) {
  // The packets that would be in flight exist only as counts.
  run_.network.CheckConservation();
  has_ended_in_replay_ = true;
  CountChanges undone = episode.changes_after_end;
  for (auto& change : undone) change.second = -change.second;
  StateArchive add(undone);
  run_.state.Visit(add);
  run_.streams.StopAt(begin_ps + episode.LastEndPs());
}

void EpisodeReplayer::NoteMiss() {
  if (++misses_ > kEpisodeMissesMax) mode_ = ReplayCacheMode::kOff;
}

void EpisodeReplayer::AddCounts(std::vector<uint32_t> replayed) {
  std::sort(replayed.begin(), replayed.end());
  for (size_t i = 0; i < replayed.size();) {
    const size_t first = i;
    while (i < replayed.size() && replayed[i] == replayed[first]) ++i;
    CountChanges changes = cache_.episode(replayed[first]).changes;
    for (auto& change : changes) change.second *= i - first;
    StateArchive add(changes);
    run_.state.Visit(add);
  }
}

// Returns the episode that begins in the state with the first pending operation, if it can happen
// as stored; it has happened then, except for its counters.
std::optional<uint32_t> EpisodeReplayer::TryKnown(uint32_t state) {
  const StreamRunner::Pending first = run_.streams.pending().front();
  std::vector<uint32_t>& known =
      cache_.Find(state, PlaceOfGpu(GpuOf(first.rank)), run_.plans.Of(run_.streams.CallOf(first)));
  for (size_t i = 0; i < known.size(); ++i) {
    const Episode& episode = cache_.episode(known[i]);
    if (episode.begin_state != state || !Try(episode)) continue;
    std::rotate(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(i),
                known.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return known.front();
  }
  return std::nullopt;
}

// Returns true if the remaining calls and pending changes leave room for the episode.
bool EpisodeReplayer::MayHappen(const Episode& episode, int64_t start_ps) const {
  const uint64_t calls_left = run_.ledger.calls_left();
  if (episode.operations.size() > calls_left) return false;
  const bool is_last = episode.operations.size() == calls_left;
  if (is_last && !episode.can_be_last) return false;
  const int64_t lasts_ps = is_last ? episode.LastEndPs() : episode.duration_ps;
  return SumPs(start_ps, lasts_ps) < next_disturbance_ps_;
}

bool EpisodeReplayer::Try(const Episode& episode) {
  StreamRunner& streams = run_.streams;
  const int64_t start_ps = streams.pending().front().begin_ps;
  if (!MayHappen(episode, start_ps)) return false;
  const int64_t rest_ps = SumPs(start_ps, episode.duration_ps);
  tried_.clear();
  streams.BeginTrial();
  // Something waits for how far a watched collective has come.
  const auto is_watched = [this](const Call& call) {
    return run_.progress.IsWatched(run_.calls.CollectiveNumberOf(call));
  };
  const bool matches =
      FollowEpisode(episode, start_ps) &&
      (streams.pending().empty() || streams.pending().front().begin_ps >= rest_ps) &&
      std::none_of(tried_.begin(), tried_.end(), is_watched);
  const bool keep = matches && mode_ != ReplayCacheMode::kVerify;
  streams.EndTrial(keep);
  if (keep) NoteTried(episode, start_ps);
  return matches;
}

// Begins and ends the operations of the episode at the stored times; false if the programs differ.
bool EpisodeReplayer::FollowEpisode(const Episode& episode, int64_t start_ps) {
  StreamRunner& streams = run_.streams;
  const std::vector<EpisodeOperation>& operations = episode.operations;
  size_t next_end = 0;
  while (next_end < operations.size()) {
    const uint32_t ending = episode.end_order[next_end];
    const size_t beginning = tried_.size();
    const bool has_begun = ending < beginning;
    if (has_begun && (beginning == operations.size() ||
                      operations[ending].end_ps <= operations[beginning].begin_ps)) {
      ++next_end;
      streams.EndInTrial(tried_[ending], start_ps + operations[ending].end_ps);
      continue;
    }
    if (streams.pending().empty()) return false;
    const StreamRunner::Pending& first = streams.pending().front();
    const EpisodeOperation& stored = operations[beginning];
    if (first.begin_ps != start_ps + stored.begin_ps ||
        PlaceOfGpu(GpuOf(first.rank)) != stored.place ||
        run_.plans.Of(streams.CallOf(first)) != stored.plan) {
      return false;
    }
    tried_.push_back(streams.BeginFirst());
  }
  return true;
}

// The calls that were tried have happened.
void EpisodeReplayer::NoteTried(const Episode& episode, int64_t start_ps) {
  CallLedger& ledger = run_.ledger;
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (i + 2 * kPrefetched < tried_.size()) {
      __builtin_prefetch(&run_.calls.OperationOf(tried_[i + 2 * kPrefetched]));
      ledger.Prefetch(tried_[i + kPrefetched]);
    }
    ledger.NoteBegin(tried_[i], start_ps + episode.operations[i].begin_ps);
  }
  for (size_t next = 0; next < episode.end_order.size(); ++next) {
    const uint32_t i = episode.end_order[next];
    if (next + kPrefetched < episode.end_order.size()) {
      __builtin_prefetch(&run_.calls.OperationOf(tried_[episode.end_order[next + kPrefetched]]));
    }
    const EpisodeOperation& operation = episode.operations[i];
    ledger.NoteReplayed(run_.calls.CollectiveNumberOf(tried_[i]), ReplayRule::kNetwork);
    CriticalPath path;
    if (keep_paths_) {
      path = {episode.paths[i].Renamed(&GpuOfPlace)};
      path.origin_ps += start_ps;
    }
    ledger.NoteEnd(tried_[i], start_ps + operation.begin_ps, start_ps + operation.end_ps, path);
  }
}

// --- Members that are in no snapshot -------------------------------------------------------------

// Precondition: the network is at rest.
void EpisodeReplayer::CheckIdle() const {
  FieldCheck check;
  StateArchive archive(check);
  run_.state.Visit(archive);
  const std::string busy = check.DescribeBusy();
  SIM_CHECK(busy.empty(),
            fmt::format("the network is at rest at {} ps, but {}", run_.engine.NowPs(), busy));
}

FixedMembers EpisodeReplayer::FixedNow() const {
  FieldCheck check;
  StateArchive archive(check);
  run_.state.Visit(archive);
  return check.TakeFixed();
}

// The rest after an episode may be seen later than it began, and a fault may change them meanwhile.
std::string EpisodeReplayer::ChangedIn(const EpisodeRecording& recording) const {
  if (recording.disturbance_ps <= run_.engine.NowPs()) return {};
  FieldCheck check(recording.fixed);
  StateArchive archive(check);
  run_.state.Visit(archive);
  return check.DescribeChanged();
}

// --- Recordings ----------------------------------------------------------------------------------

void EpisodeReplayer::StartRecording(const NetworkRest& rest) {
  recording_.emplace();
  recording_->begin = rest;
  recording_->disturbance_ps = next_disturbance_ps_;
  recording_->episode.begin_state = rest.state;
}

void EpisodeReplayer::OnBegin(RunningIndex operation) {
  if (!recording_) return;
  const StreamRunner::Running& running = run_.streams.running()[operation];
  std::vector<EpisodeOperation>& operations = recording_->episode.operations;
  if (recorded_.size() <= operation) recorded_.resize(operation + 1);
  recorded_[operation] = static_cast<uint32_t>(operations.size());
  operations.push_back({.place = PlaceOfGpu(running.call.gpu()),
                        .plan = run_.plans.Of(running.call),
                        .begin_ps = running.start_ps - recording_->begin.time_ps});
  if (keep_paths_) recording_->episode.paths.emplace_back();
}

void EpisodeReplayer::OnEnd(RunningIndex operation) {
  if (!recording_) return;
  Episode& episode = recording_->episode;
  const uint32_t recorded = recorded_[operation];
  const int64_t begin_ps = recording_->begin.time_ps;
  episode.operations[recorded].end_ps = run_.engine.NowPs() - begin_ps;
  if (!keep_paths_) return;
  episode.paths[recorded] = run_.streams.running()[operation].path.Renamed(&PlaceOfGpu);
  episode.paths[recorded].origin_ps -= begin_ps;
}

// The last operation so far has ended; packets may still be in flight.
void EpisodeReplayer::OnNothingRuns() {
  if (!recording_) return;
  recording_->episode.can_be_last = false;
  if (++recording_->gaps > kGapsMax) return;
  StateArchive archive(run_.engine.NowPs());
  run_.state.Visit(archive);
  recording_->end_counts = archive.TakeCounts();
  recording_->episode.can_be_last = run_.network.InFlightBytes() == 0;
  if (run_.ledger.calls_left() == 0 && recording_->expected) CheckLastEpisode();
}

void EpisodeReplayer::CheckLastEpisode() {
  const Episode& expected = cache_.episode(*recording_->expected);
  CountSnapshot predicted = recording_->begin.counts;
  const auto count = [&predicted](uint32_t place) -> uint64_t& {
    return predicted[place >> kSectionShift][place & ((1u << kSectionShift) - 1)];
  };
  for (const auto& [place, change] : expected.changes) count(place) += change;
  for (const auto& [place, change] : expected.changes_after_end) count(place) -= change;
  const std::string changed = ChangedIn(*recording_);
  const bool holds = recording_->episode.operations == expected.operations &&
                     recording_->end_counts == predicted && changed.empty();
  CheckIsAsRecorded(*recording_, holds, [&] {
    const CountSnapshot& begin = recording_->begin.counts;
    return JoinDifferences(
        {DescribeDifference(recording_->episode.operations, expected.operations),
         DescribeDifference([this](StateArchive& archive) { run_.state.Visit(archive); },
                            ChangesBetween(begin, recording_->end_counts),
                            ChangesBetween(begin, predicted)),
         changed});
  });
  ++episodes_verified_;
}

// `found` is the episode with what is known at its end.
void EpisodeReplayer::CheckEpisode(const EpisodeRecording& recording, const Episode& found,
                                   bool is_comparable) {
  const Episode& expected = cache_.episode(*recording.expected);
  const bool same_end = found.end_state == expected.end_state ||
                        found.duration_ps != expected.duration_ps;  // seen at another instant
  const std::string changed = ChangedIn(recording);
  const bool holds = is_comparable && same_end && found.operations == expected.operations &&
                     found.changes == expected.changes && changed.empty();
  CheckIsAsRecorded(recording, holds, [&] {
    if (!is_comparable) return std::string("something was lost, drawn or timed out");
    const StateWalk walk = [this](StateArchive& archive) { run_.state.Visit(archive); };
    const bool has_states = found.end_state != EpisodeCache::kStateUnknown;
    return JoinDifferences({DescribeDifference(found.operations, expected.operations),
                            has_states && !same_end
                                ? DescribeDifference(walk, cache_.state(found.end_state),
                                                     cache_.state(expected.end_state))
                                : std::string(),
                            DescribeDifference(walk, found.changes, expected.changes), changed});
  });
  ++episodes_verified_;
}

void EpisodeReplayer::FinishRecording(const NetworkRest& rest) {
  EpisodeRecording recording = *std::move(recording_);
  recording_.reset();
  Episode episode = std::move(recording.episode);
  episode.end_state = rest.state;
  episode.duration_ps = rest.time_ps - recording.begin.time_ps;
  const bool is_comparable = rest.unrepeatable == recording.begin.unrepeatable &&
                             HasPlacesOf(recording.begin.counts, recording.end_counts) &&
                             HasPlacesOf(recording.end_counts, rest.counts);
  if (is_comparable) {
    episode.changes = ChangesBetween(recording.begin.counts, rest.counts);
    episode.changes_after_end = ChangesBetween(recording.end_counts, rest.counts);
  }
  if (recording.expected) {
    CheckEpisode(recording, episode, is_comparable);
    return;
  }
  const bool is_undisturbed = recording.disturbance_ps > rest.time_ps;
  if (!is_comparable || !is_undisturbed || rest.state == EpisodeCache::kStateUnknown) return;
  if (!HasPlacesOf(rest.counts, recording.begin.counts)) {
    episode.begin_state = StateWithWhatIsNew(rest, recording.begin.state);
    if (episode.begin_state == EpisodeCache::kStateUnknown) return;
  }
  cache_.Add(std::move(episode));
}

// Returns the state as it would be if all connections had been open: new connections are quiescent.
uint32_t EpisodeReplayer::StateWithWhatIsNew(const NetworkRest& now, uint32_t state) {
  StateArchive put(cache_.state(state), now.time_ps);
  run_.state.Visit(put);
  StateArchive archive(now.time_ps);
  run_.state.Visit(archive);
  StateArchive put_back(cache_.state(now.state), now.time_ps);
  run_.state.Visit(put_back);
  return archive.is_quiescent() ? cache_.NumberOf(archive.TakeState())
                                : EpisodeCache::kStateUnknown;
}

}  // namespace railyard
