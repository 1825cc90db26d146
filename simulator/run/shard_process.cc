// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/shard_process.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <sys/resource.h>

#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// The share that is done is summed over all lanes only so often.
constexpr uint64_t kWindowsPerShare = 1024;

template <typename Row>
void PutRows(const std::vector<Row>& rows, Handover& to) {
  to.Put(std::string(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row)));
}

template <typename Row>
bool TakeRows(std::vector<Row>& rows, Handover& from) {
  std::string bytes;
  if (!from.Take(bytes) || bytes.size() % sizeof(Row) != 0) return false;
  rows.resize(bytes.size() / sizeof(Row));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(rows.data()));
  return true;
}

}  // namespace

void ShardOutcome::Put(Handover& to) const {
  to.Put(obstacle);
  to.Put(end_ps);
  to.Put(events);
  to.Put(windows);
  to.Put(serial_events);
  to.Put(waiting_seconds);
  to.Put(crossings);
  to.Put(cpu_seconds);
  to.Put(peak_rss_bytes);
  to.Put(network);
  to.Put(stack);
  to.Put(in_flight_bytes);
  PutRows(links, to);
  PutRows(calls, to);
  PutRows(taken, to);
}

bool ShardOutcome::Take(Handover& from) {
  return from.Take(obstacle) && from.Take(end_ps) && from.Take(events) && from.Take(windows) &&
         from.Take(serial_events) && from.Take(waiting_seconds) && from.Take(crossings) &&
         from.Take(cpu_seconds) && from.Take(peak_rss_bytes) && from.Take(network) &&
         from.Take(stack) && from.Take(in_flight_bytes) && TakeRows(links, from) &&
         TakeRows(calls, from) && TakeRows(taken, from);
}

ShardProcess::ShardProcess(const PreparedRun& run, const ShardMap& map, WindowExchange& exchange,
                           uint32_t shard)
    : run_(run), map_(map), member_(exchange, shard) {}

bool ShardProcess::IsOwn(GlobalRank rank) const {
  return map_.of_device[run_.graph.gpus()[rank]] == member_.shard();
}

void ShardProcess::Start() {
  run_.network.part().SetBorder(map_.outgoing[member_.shard()], map_.incoming[member_.shard()]);
  calls_left_ = run_.replay.streams().CountPending([this](GlobalRank rank) { return IsOwn(rank); });
  report_.is_done = calls_left_ == 0;
  run_.replay.hooks().on_call_end = [this](const Call& call, int64_t begin_ps, int64_t end_ps) {
    outcome_.calls.push_back({.number = run_.replay.calls().NumberOf(call),
                              .rank = call.rank,
                              .begin_ps = begin_ps,
                              .end_ps = end_ps});
    if (--calls_left_ == 0) run_.engine.Stop();
  };
  run_.replay.StartShard([this](GlobalRank rank) { return IsOwn(rank); });
}

void ShardProcess::RunBefore(const EventPlace& end) {
  next_event_ps_ = run_.engine.RunBefore(end);
  reached_ps_ = end.time_ps;
  if (calls_left_ > 0 || report_.is_done) return;
  report_.is_done = true;
  report_.done_at = run_.engine.last_place();
  reached_ps_ = report_.done_at.time_ps;
}

void ShardProcess::NoteObstacles() {
  // Draws of marks are keyed by the numbers of queue pairs.
  if (run_.network.counters().draws > 0 && !run_.replay.has_numbers_of_one_process()) {
    outcome_.obstacle = "packets are marked at random";
  }
  if (const std::string& obstacle = run_.network.part().obstacle(); !obstacle.empty()) {
    outcome_.obstacle = obstacle;
  }
  if (!run_.network.hold_reports().empty()) outcome_.obstacle = "a link is held for long";
  if (run_.replay.executor().network_stack().counters().retransmitted_packets > 0) {
    outcome_.obstacle = "packets are sent again";
  }
}

const std::vector<ShardReport>& ShardProcess::Meet() {
  crossings_.clear();
  report_.next_ps = std::min(next_event_ps_, run_.network.part().Collect(reached_ps_, crossings_));
  for (const Crossing& crossing : crossings_) {
    report_.next_ps = std::min(report_.next_ps, crossing.time_ps());
    const LinkId link = crossing.packet.link;
    const DeviceId end =
        crossing.is_pause_frame() ? run_.graph.link_source(link) : run_.graph.link_target(link);
    member_.Send(map_.of_device[end], crossing);
  }
  outcome_.crossings += crossings_.size();
  NoteObstacles();
  report_.gives_up = !outcome_.obstacle.empty();
  report_.is_asked_to_end = member_.IsAskedToEnd();
  const NetworkCounters& counters = run_.network.counters();
  ShardProgress& progress = member_.progress();
  progress.now_ps.store(run_.engine.NowPs(), std::memory_order_relaxed);
  progress.hops.store(counters.packet_hops + counters.control_hops, std::memory_order_relaxed);
  if (outcome_.windows % kWindowsPerShare == 0) {
    progress.share_done.store(run_.replay.ShareDone(), std::memory_order_relaxed);
  }
  report_.events = EventsOfShard() - reported_events_;
  reported_events_ += report_.events;
  const auto waits_from = std::chrono::steady_clock::now();
  const std::vector<ShardReport>& reports = member_.Meet(report_);
  outcome_.waiting_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - waits_from).count();
  outcome_.serial_events += std::ranges::max(reports, {}, &ShardReport::events).events;
  for (const Crossing& crossing : member_.received()) {
    run_.network.part().Take(crossing);
    // Its sender tells of it in this round only.
    next_event_ps_ = std::min(next_event_ps_, crossing.time_ps());
  }
  member_.received().clear();
  return reports;
}

EventPlace ShardProcess::RunWindows() {
  next_event_ps_ = run_.engine.RunBefore({});
  const std::vector<ShardReport>* reports = &Meet();
  for (;;) {
    const auto any = [&](bool ShardReport::*flag) { return std::ranges::any_of(*reports, flag); };
    if (any(&ShardReport::gives_up)) return {};
    if (any(&ShardReport::is_asked_to_end)) return {reached_ps_, 0};
    int64_t begin_ps = INT64_MAX;
    for (const ShardReport& report : *reports) begin_ps = std::min(begin_ps, report.next_ps);
    if (begin_ps >= kTimeEndPs) {
      outcome_.obstacle = "its ranks wait for each other";
      return {};
    }
    const EventPlace end = {
        map_.lookahead_ps > kTimeEndPs - begin_ps ? kTimeEndPs : begin_ps + map_.lookahead_ps, 0};
    ++outcome_.windows;
    if (!report_.is_done) RunBefore(end);
    reports = &Meet();
    if (std::ranges::all_of(*reports, &ShardReport::is_done)) break;
    if (!any(&ShardReport::is_done) || any(&ShardReport::gives_up)) continue;
    if (report_.is_done) RunBefore(end);
    reports = &Meet();
  }
  EventPlace end;
  for (const ShardReport& report : *reports) end = std::max(end, report.done_at);
  return end;
}

ShardOutcome ShardProcess::Run() {
  Start();
  const EventPlace end = RunWindows();
  if (end != EventPlace{} && outcome_.obstacle.empty()) run_.engine.RunBefore(end);
  NoteObstacles();
  outcome_.end_ps = end.time_ps;
  return Outcome();
}

uint64_t ShardProcess::EventsOfShard() const {
  return run_.engine.EventCount() - run_.network.part().arrivals_elsewhere();
}

ShardOutcome ShardProcess::Outcome() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  outcome_.cpu_seconds =
      static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  outcome_.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (!outcome_.obstacle.empty()) return std::move(outcome_);
  run_.network.CheckConservation();
  outcome_.events = EventsOfShard();
  outcome_.network = run_.network.counters();
  outcome_.network.pfc_pause_ps = run_.network.PausedPs();
  outcome_.stack = run_.replay.executor().network_stack().counters();
  outcome_.in_flight_bytes = run_.network.part().InFlightBytes();
  outcome_.links = run_.network.part().Totals();
  const std::vector<StreamRunner::Span> running = run_.replay.streams().RunningSpans();
  outcome_.calls.insert(outcome_.calls.end(), running.begin(), running.end());
  outcome_.taken = run_.replay.executor().connection_table().AllTaken();
  return std::move(outcome_);
}

}  // namespace railyard
