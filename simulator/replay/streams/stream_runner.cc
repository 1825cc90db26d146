// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/stream_runner.h"

#include <algorithm>

#include <ns3/simulator.h>

#include "simulator/event_order/event_order.h"
#include "simulator/units/mix64.h"
#include "simulator/units/time_end.h"

namespace railyard {

StreamRunner::StreamRunner(FabricSimulatorImpl& engine, const CallTable& calls, CallLedger& ledger,
                           const CtaClock& clock, CallHost& host, CallReplay& replay, uint64_t seed)
    : engine_(engine),
      calls_(calls),
      ledger_(ledger),
      clock_(clock),
      host_(host),
      replay_(replay),
      order_(calls.job()) {
  DrawSkews(seed);
  engine_.Register(event_order::kOperation,
                   {.name = "calls",
                    .pending = PendingMeans::kNothing,
                    .state = {.why_none = "EpisodeReplayer compares the calls that wait"}},
                   &StreamRunner::HandleOperation, this);
}

void StreamRunner::DrawSkews(uint64_t seed) {
  constexpr uint64_t kSkews = 0x736b657773;  // separates these draws from others of the seed
  skew_ps_.clear();
  for (const JobPart& part : calls_.job().parts) {
    if (part.rank_skew_max_ps == 0) continue;
    skew_ps_.resize(calls_.job().rank_count);
    const uint64_t values = static_cast<uint64_t>(part.rank_skew_max_ps) + 1;
    for (const GlobalRank rank : part.global_ranks) {
      skew_ps_[rank] = static_cast<int64_t>(Mix64(Mix64(seed ^ kSkews) ^ rank) % values);
    }
  }
}

void StreamRunner::Prepare() {
  order_.Start([this](GlobalRank rank, uint32_t index, int64_t begin_ps) {
    MayBegin({rank, index}, begin_ps);
  });
}

void StreamRunner::Start() {
  Prepare();
  NotifyIfAllEnded();
  ScheduleFirst();
}

void StreamRunner::NotifyIfAllEnded() const {
  if (ledger_.calls_left() > 0) return;
  const std::function<void()>& on_all_ended = ledger_.hooks().on_all_ended;
  on_all_ended ? on_all_ended() : ns3::Simulator::Stop();
}

// --- Start conditions ----------------------------------------------------------------------------

void StreamRunner::MayBegin(const Call& call, int64_t begin_ps) {
  pending_.push_back({.begin_ps = WithSkewPs(call.rank, begin_ps),
                      .number = calls_.NumberOf(call),
                      .rank = call.rank});
  std::push_heap(pending_.begin(), pending_.end());
}

// A slow GPU takes longer for what is computed before a call.
void StreamRunner::MayBeginAfter(int64_t end_ps, const Call& call, int64_t begin_ps) {
  const int64_t compute_ps = begin_ps - end_ps;
  if (compute_ps > 0 && clock_.StandsStill(call.gpu())) {
    Stop(call.rank, calls_.NumberOf(call), compute_ps);
    return;
  }
  const int64_t slowed_ps = clock_.AtSpeedOfPs(call.gpu(), compute_ps);
  if (slowed_ps > kTimeEndPs - end_ps || !late_.empty()) [[unlikely]] {
    NoteLate(calls_.NumberOf(call), end_ps, compute_ps, slowed_ps);
  }
  MayBegin(call, SumPs(end_ps, slowed_ps));
}

void StreamRunner::LetFollow(const Call& call, int64_t end_ps) {
  order_.End(call.rank, call.index, end_ps,
             [this, end_ps](GlobalRank rank, uint32_t index, int64_t begin_ps) {
               MayBeginAfter(end_ps, {rank, index}, begin_ps);
             });
}

std::vector<StreamRunner::Pending> StreamRunner::FollowersOf(RunningIndex id) {
  const Call ending = running_[id].call;
  const int64_t end_ps = running_[id].replayed_end_ps;
  std::vector<Pending> followers;
  order_.BeginTrial();
  order_.End(ending.rank, ending.index, end_ps,
             [&](GlobalRank rank, uint32_t index, int64_t begin_ps) {
               const Call call{rank, index};
               if (begin_ps > end_ps && clock_.StandsStill(call.gpu())) return;
               const int64_t slowed_ps = clock_.AtSpeedOfPs(call.gpu(), begin_ps - end_ps);
               followers.push_back({.begin_ps = WithSkewPs(rank, SumPs(end_ps, slowed_ps)),
                                    .number = calls_.NumberOf(call),
                                    .rank = rank});
             });
  order_.EndTrial(false);
  return followers;
}

StreamRunner::Pending StreamRunner::TakeFirst() {
  const Pending first = pending_.front();
  std::pop_heap(pending_.begin(), pending_.end());
  pending_.pop_back();
  return first;
}

// --- Events --------------------------------------------------------------------------------------

// Puts the first of `pending_` on the wheel.
void StreamRunner::ScheduleFirst() {
  if (pending_.empty()) return;
  const Pending& first = pending_.front();
  if (first.begin_ps == scheduled_.begin_ps && first.number == scheduled_.number) return;
  engine_.ScheduleFabric(first.begin_ps, event_order::kOperation, first.number,
                         OperationEvent::Begins(first.number).target());
  scheduled_ = first;
}

void StreamRunner::Schedule(RunningIndex id, int64_t time_ps) {
  engine_.ScheduleFabric(time_ps, event_order::kOperation, calls_.NumberOf(running_[id].call),
                         OperationEvent::Runs(id).target());
}

void StreamRunner::StopAt(int64_t time_ps) {
  engine_.ScheduleFabric(time_ps, event_order::kOperation, 0,
                         OperationEvent::Begins(CallNumber{0}).target());
}

void StreamRunner::HandleOperation(void* self, uint32_t target) {
  static_cast<StreamRunner*>(self)->OnEvent(OperationEvent::Of(target));
}

void StreamRunner::OnEvent(OperationEvent event) {
  if (event.is_begin()) {
    OnBeginEvent(event.call());
  } else {
    OnRunningEvent(event.operation());
  }
}

void StreamRunner::OnRunningEvent(RunningIndex id) {
  const Running& running = running_[id];
  if (running.is_free() || ledger_.IsAborted(calls_.PartOf(running.call.rank))) [[unlikely]]
    return;
  if (is_ahead()) [[unlikely]] {
    running.is_launched ? EndAhead(id) : Launch(id);
  } else if (running.replayed_end_ps > engine_.NowPs()) {
    // It is replayed: nothing is launched.
  } else if (running.is_launched) {
    End(id);
  } else if (!replay_.OnLaunch(id)) {
    Launch(id);
  }
}

void StreamRunner::OnBeginEvent(CallNumber number) {
  if (ledger_.calls_left() == 0) {
    NotifyIfAllEnded();
    return;
  }
  // If it is not the first, another came before it, and its turn is yet to come or has been.
  if (pending_.empty()) return;
  const Pending first = pending_.front();
  if (first.begin_ps != engine_.NowPs() || first.number != number) return;
  if (running_count_ > 0 || !replay_.ReplayFromRest()) Begin(TakeFirst());
  ScheduleFirst();
}

// --- Running operations --------------------------------------------------------------------------

RunningIndex StreamRunner::NewRunning(const Call& call, int64_t start_ps) {
  if (free_running_ == RunningIndex::kNone) {
    free_running_ = RunningIndex{running_.size()};
    running_.emplace_back();
  }
  const RunningIndex id = free_running_;
  Running& running = running_[id];
  free_running_ = running.next_free;
  running = {};
  running.call = call;
  running.start_ps = start_ps;
  return id;
}

void StreamRunner::FreeRunning(RunningIndex id) {
  Running& running = running_[id];
  running.schedule.reset();
  running.call.rank = GlobalRank::kNone;
  running.next_free = free_running_;
  free_running_ = id;
}

void StreamRunner::Begin(const Pending& pending) {
  const RunningIndex id = NewRunning(CallOf(pending), pending.begin_ps);
  ++running_count_;
  ledger_.NoteBegin(running_[id].call, pending.begin_ps);
  if (replay_.OnBegin(id)) return;
  Schedule(id, pending.begin_ps + host_.LaunchLatencyPs(running_[id].call));
}

void StreamRunner::EndAt(RunningIndex id, int64_t end_ps) {
  running_[id].is_launched = true;
  running_[id].replayed_end_ps = end_ps;
  Schedule(id, end_ps);
}

void StreamRunner::Launch(RunningIndex id) {
  running_[id].end_ps = engine_.NowPs();
  CallHost::Launched launched = host_.Launch(id, running_[id].call);
  Running& running = running_[id];
  running.schedule = std::move(launched.schedule);
  running.is_launched = true;
  // Channels without anything to wait for have finished already.
  running.channels_left = static_cast<uint16_t>(running.channels_left + launched.channels);
  if (running.channels_left == 0) Schedule(id, running.end_ps);
}

void StreamRunner::OnChannelFinished(RunningIndex id, int64_t end_ps, const CriticalPath* path) {
  Running& running = running_[id];
  if (path != nullptr && path->EndsAfter(running.path)) running.path = *path;
  running.end_ps = std::max(running.end_ps, end_ps);
  --running.channels_left;
  if (running.is_launched && running.channels_left == 0) Schedule(id, running.end_ps);
}

void StreamRunner::End(RunningIndex id) {
  const Running& running = running_[id];
  const int64_t now_ps = engine_.NowPs();
  const Call call = running.call;
  ledger_.NoteEnd(call, running.start_ps, now_ps, running.path);
  replay_.OnEnd(id);
  FreeRunning(id);
  --running_count_;
  if (running_count_ == 0) replay_.OnNothingRuns();
  LetFollow(call, now_ps);
  NotifyIfAllEnded();
  ScheduleFirst();
}

bool StreamRunner::IsHeldUp(PartIndex part) const {
  const auto is_of_part = [&](const auto& call) { return IsOfPart(call, part); };
  return std::ranges::any_of(running_, is_of_part) || std::ranges::any_of(stopped_, is_of_part);
}

int64_t StreamRunner::LastBeginPs(PartIndex part) const {
  int64_t last_ps = 0;
  for (const Running& running : running_) {
    if (IsOfPart(running, part)) last_ps = std::max(last_ps, running.start_ps);
  }
  return last_ps;
}

std::vector<GlobalRank> StreamRunner::RanksInCollectives(PartIndex part) const {
  std::vector<GlobalRank> ranks;
  for (const Running& running : running_) {
    if (IsOfPart(running, part)) ranks.push_back(running.call.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// --- Trials --------------------------------------------------------------------------------------

void StreamRunner::BeginTrial() {
  pending_before_ = pending_;
  stopped_before_ = stopped_.size();
  if (!late_.empty() || !late_before_.empty()) late_before_ = late_;
  order_.BeginTrial();
}

Call StreamRunner::BeginFirst() { return CallOf(TakeFirst()); }

void StreamRunner::EndTrial(bool keep) {
  order_.EndTrial(keep);
  if (keep) return;
  pending_.swap(pending_before_);
  stopped_.resize(stopped_before_);
  if (!late_.empty() || !late_before_.empty()) late_ = late_before_;
}

// --- Ahead ---------------------------------------------------------------------------------------

void StreamRunner::RunAhead(std::span<const AheadCall> calls, const OnEndAhead& on_end) {
  on_end_ahead_ = &on_end;
  engine_.RunAhead([&] {
    for (size_t i = 0; i < calls.size(); ++i) {
      const RunningIndex id = NewRunning(calls[i].call, calls[i].begin_ps);
      running_[id].ahead = static_cast<uint32_t>(i);
      Schedule(id, calls[i].begin_ps + host_.LaunchLatencyPs(calls[i].call));
    }
  });
  on_end_ahead_ = nullptr;
}

void StreamRunner::EndAhead(RunningIndex id) {
  (*on_end_ahead_)(running_[id].ahead, running_[id].path);
  FreeRunning(id);
}

}  // namespace railyard
