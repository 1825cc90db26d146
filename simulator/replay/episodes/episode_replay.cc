// SPDX-License-Identifier: GPL-2.0-only
// When the network is at rest and an operation begins: replays episodes that are known, one after
// the other, or records the one that begins.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include <ns3/simulator.h>

#include "simulator/diagnostics/check.h"
#include "simulator/engine/look.h"
#include "simulator/event_order/event_order.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// A job that has not repeated itself in so many episodes is simulated without looking for more.
constexpr uint32_t kMissesMax = 4096;

// After so many gaps without rest an episode is not looked at in the next: it cannot be a run's
// last.
constexpr uint32_t kGapsMax = 1024;

// Calls ahead of the one that is replayed.
constexpr size_t kPrefetched = 8;

}  // namespace

// Only beginnings, and what passes without effect or is known to be due, are on the wheel.
bool ReplayEngine::IsQuiet() {
  bool is_quiet = true;
  next_disturbance_ps_ = kTimeEndPs;
  engine_.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    switch (engine_.TraitsOf(event_class).pending) {
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

void ReplayEngine::Visit(StateArchive& archive) { registry_.Visit(archive); }

bool ReplayEngine::ReplayEpisodes() {
  if (!IsQuiet() || !stopped_.empty()) return false;
  const int64_t now_ps = engine_.NowPs();
  StateArchive archive(now_ps);
  Visit(archive);
  if (!archive.is_at_rest()) return false;
  const NetworkRest rest{.time_ps = now_ps,
                         .state = cache_.NumberOf(archive.TakeState()),
                         .unrepeatable = archive.unrepeatable(),
                         .counts = archive.TakeCounts()};
  if (recording_) FinishRecording(rest);
  if (rest.state == EpisodeCache::kStateUnknown) {
    NoteMiss();
    return false;
  }

  int64_t rest_ps = now_ps;
  uint32_t state = rest.state;
  int64_t last_begin_ps = now_ps;
  std::vector<uint32_t> replayed;
  while (!pending_.empty()) {
    const int64_t begin_ps = pending_.front().begin_ps;
    // Time that passes changes such a state.
    if (begin_ps > rest_ps && cache_.state(state).instants_ahead_ps > 0) break;
    const std::optional<uint32_t> known = TryKnown(state);
    if (!known) break;
    if (cache_mode_ == ReplayCacheMode::kVerify) {
      StartRecording(rest);
      recording_->expected = known;
      return false;
    }
    const Episode& episode = cache_.episode(*known);
    replayed.push_back(*known);
    last_begin_ps = begin_ps;
    if (operations_left_ == 0) break;
    rest_ps = begin_ps + episode.duration_ps;
    state = episode.end_state;
    // A job that repeats itself for long is here for long.
    if (LookIfRequested()) break;
  }
  if (replayed.empty()) {
    NoteMiss();
    if (cache_mode_ != ReplayCacheMode::kOff) StartRecording(rest);
    return false;
  }
  misses_ = 0;
  StateArchive put(cache_.state(state), rest_ps);
  Visit(put);
  const uint32_t last = replayed.back();
  AddCounts(std::move(replayed));
  if (operations_left_ == 0) EndWith(cache_.episode(last), last_begin_ps);
  return true;
}

// A run ends with its last operation, not with the rest that follows.
void ReplayEngine::EndWith(const Episode& episode, int64_t begin_ps) {
  // Of the packets that would be on their way there are counts alone.
  network_.CheckConservation();
  has_ended_in_replay_ = true;
  RestCountChanges undone = episode.changes_after_end;
  for (auto& change : undone) change.second = -change.second;
  StateArchive add(undone);
  Visit(add);
  engine_.ScheduleFabric(begin_ps + episode.LastEndPs(), event_order::kOperation, 0, kBegins);
}

void ReplayEngine::NoteMiss() {
  if (++misses_ > kMissesMax) cache_mode_ = ReplayCacheMode::kOff;
}

void ReplayEngine::AddCounts(std::vector<uint32_t> replayed) {
  std::sort(replayed.begin(), replayed.end());
  for (size_t i = 0; i < replayed.size();) {
    const size_t first = i;
    while (i < replayed.size() && replayed[i] == replayed[first]) ++i;
    RestCountChanges changes = cache_.episode(replayed[first]).changes;
    for (auto& change : changes) change.second *= i - first;
    StateArchive add(changes);
    Visit(add);
  }
}

// The episode that begins in the state with the first operation pending, if it can happen as it is
// known; it has, then, but for what it counted.
std::optional<uint32_t> ReplayEngine::TryKnown(uint32_t state) {
  const Pending first = pending_.front();
  std::vector<uint32_t>& known =
      cache_.Find(state, first.rank, PlanNumberOf(first.rank, first.number));
  for (size_t i = 0; i < known.size(); ++i) {
    const Episode& episode = cache_.episode(known[i]);
    if (episode.begin_state != state || !Try(episode)) continue;
    std::rotate(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(i),
                known.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return known.front();
  }
  return std::nullopt;
}

bool ReplayEngine::Try(const Episode& episode) {
  const int64_t start_ps = pending_.front().begin_ps;
  const int64_t rest_ps = SumPs(start_ps, episode.duration_ps);
  if (episode.operations.size() > operations_left_) return false;
  const bool is_last = episode.operations.size() == operations_left_;
  if (is_last && !episode.can_be_last) return false;
  if ((is_last ? SumPs(start_ps, episode.LastEndPs()) : rest_ps) >= next_disturbance_ps_)
    return false;
  pending_before_ = pending_;
  tried_.clear();
  order_.BeginTrial();
  // Something waits for how far a watched collective has come.
  const bool matches = FollowEpisode(episode, start_ps) &&
                       (pending_.empty() || pending_.front().begin_ps >= rest_ps) &&
                       std::none_of(tried_.begin(), tried_.end(), [this](const Call& call) {
                         return watched_.contains(CollectiveOf(call));
                       });
  const bool keep = matches && cache_mode_ != ReplayCacheMode::kVerify;
  order_.EndTrial(keep);
  if (!keep) {
    pending_.swap(pending_before_);
    return matches;
  }
  for (size_t i = 0; i < tried_.size(); ++i) {
    if (i + 2 * kPrefetched < tried_.size()) {
      __builtin_prefetch(&CallOf(tried_[i + 2 * kPrefetched]));
      __builtin_prefetch(&times_[CollectiveOf(tried_[i + kPrefetched])], 1);
    }
    NoteBegin(tried_[i], start_ps + episode.operations[i].begin_ps);
  }
  for (size_t next = 0; next < episode.end_order.size(); ++next) {
    const uint32_t i = episode.end_order[next];
    if (next + kPrefetched < episode.end_order.size()) {
      __builtin_prefetch(&CallOf(tried_[episode.end_order[next + kPrefetched]]));
    }
    const EpisodeOperation& operation = episode.operations[i];
    times_[CollectiveOf(tried_[i])].replayed = true;
    CriticalPath path;
    if (rules_.keep_paths) {
      path = episode.paths[i];
      path.origin_ps += start_ps;
    }
    NoteEnd(tried_[i], start_ps + operation.begin_ps, start_ps + operation.end_ps, path);
  }
  return true;
}

// Lets the operations of the episode begin and end as it tells; false if the programs want it
// otherwise.
bool ReplayEngine::FollowEpisode(const Episode& episode, int64_t start_ps) {
  const std::vector<EpisodeOperation>& operations = episode.operations;
  size_t next_end = 0;
  while (next_end < operations.size()) {
    const uint32_t ending = episode.end_order[next_end];
    const size_t beginning = tried_.size();
    const bool has_begun = ending < beginning;
    if (has_begun && (beginning == operations.size() ||
                      operations[ending].end_ps <= operations[beginning].begin_ps)) {
      ++next_end;
      const Call& call = tried_[ending];
      LetFollow(call, start_ps + operations[ending].end_ps);
      continue;
    }
    if (pending_.empty()) return false;
    const Pending first = pending_.front();
    const EpisodeOperation& told = operations[beginning];
    if (first.begin_ps != start_ps + told.begin_ps || first.rank != told.rank ||
        PlanNumberOf(first.rank, first.number) != told.plan) {
      return false;
    }
    std::pop_heap(pending_.begin(), pending_.end());
    pending_.pop_back();
    tried_.push_back({first.rank, first.number - first_number_[first.rank]});
  }
  return true;
}

void ReplayEngine::StartRecording(const NetworkRest& rest) {
  recording_.emplace();
  recording_->begin = rest;
  recording_->disturbance_ps = next_disturbance_ps_;
  recording_->episode.begin_state = rest.state;
}

// The last operation so far has ended; packets may be on their way yet.
void ReplayEngine::NoteNothingRuns() {
  recording_->episode.can_be_last = false;
  if (++recording_->gaps > kGapsMax) return;
  StateArchive archive(engine_.NowPs());
  Visit(archive);
  recording_->end_counts = archive.TakeCounts();
  recording_->episode.can_be_last = network_.InFlightBytes() == 0;
  if (operations_left_ == 0 && recording_->expected) CheckLastEpisode();
}

void ReplayEngine::CheckLastEpisode() {
  const Episode& expected = cache_.episode(*recording_->expected);
  RestCounts told = recording_->begin.counts;
  const auto count = [&told](uint32_t place) -> uint64_t& {
    return told[place >> kSectionShift][place & ((1u << kSectionShift) - 1)];
  };
  for (const auto& [place, change] : expected.changes) count(place) += change;
  for (const auto& [place, change] : expected.changes_after_end) count(place) -= change;
  CheckIsAsTold(*recording_, recording_->episode.operations == expected.operations &&
                                 recording_->end_counts == told);
}

void ReplayEngine::CheckIsAsTold(const EpisodeRecording& recording, bool holds) {
  SIM_CHECK(holds, fmt::format("an episode of {} operations at {} ps is not what would have been "
                               "replayed",
                               recording.episode.operations.size(), recording.begin.time_ps));
}

void ReplayEngine::FinishRecording(const NetworkRest& rest) {
  const EpisodeRecording recording = *std::move(recording_);
  recording_.reset();
  Episode episode = recording.episode;
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
    const Episode& expected = cache_.episode(*recording.expected);
    const bool same_end = episode.end_state == expected.end_state ||
                          episode.duration_ps != expected.duration_ps;  // seen at another instant
    CheckIsAsTold(recording, is_comparable && same_end &&
                                 episode.operations == expected.operations &&
                                 episode.changes == expected.changes);
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

// The state as it would have been had all connections been open: what is opened is as at rest.
uint32_t ReplayEngine::StateWithWhatIsNew(const NetworkRest& now, uint32_t state) {
  StateArchive put(cache_.state(state), now.time_ps);
  Visit(put);
  StateArchive archive(now.time_ps);
  Visit(archive);
  StateArchive put_back(cache_.state(now.state), now.time_ps);
  Visit(put_back);
  return archive.is_at_rest() ? cache_.NumberOf(archive.TakeState()) : EpisodeCache::kStateUnknown;
}

}  // namespace railyard
