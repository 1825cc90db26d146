// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/rank_timeline.h"

#include <algorithm>
#include <map>
#include <optional>

namespace railyard {
namespace {

// Operations from `first` that are one group, or one.
size_t GroupEnd(const std::vector<TraceOperation>& program, size_t first) {
  size_t end = first + 1;
  if (program[first].group == 0) return end;
  while (end < program.size() && program[end].group == program[first].group &&
         program[end].communicator == program[first].communicator) {
    ++end;
  }
  return end;
}

// nullopt for what is no call, or takes no time.
std::optional<PlannedCall> CallAt(const Trace& trace, GlobalRank rank, size_t first, size_t end) {
  const std::vector<TraceOperation>& program = trace.operations[rank];
  const TraceOperation& operation = program[first];
  if (operation.kind == CollectiveKind::kCompute) return std::nullopt;
  PlannedCall call{.kind = operation.kind,
                   .communicator = trace.CommunicatorOf(rank, operation.communicator),
                   .bytes = operation.count * DatatypeBytes(operation.datatype)};
  if (operation.group == 0) {
    if (call.kind == CollectiveKind::kRecv) return std::nullopt;
    return call;
  }
  uint64_t sent = 0;
  uint64_t received = 0;
  for (size_t i = first; i < end; ++i) {
    (program[i].kind == CollectiveKind::kSend ? sent : received) +=
        program[i].count * DatatypeBytes(program[i].datatype);
  }
  call.kind = CollectiveKind::kAllToAll;
  call.bytes = std::max(sent, received) / trace.communicators[call.communicator].ranks.size();
  if (call.bytes == 0) return std::nullopt;
  return call;
}

// An AllToAllv of a rank.
struct ExpertEvent {
  uint32_t number = 0;    // of it, on its communicator
  int64_t before_ps = 0;  // what the rank computes and waits for since the one before
  int64_t alone_ps = 0;
};

std::vector<ExpertEvent> ExpertEventsOf(const Trace& trace, GlobalRank rank,
                                        const std::function<int64_t(const PlannedCall&)>& time_ps) {
  const std::vector<TraceOperation>& program = trace.operations[rank];
  std::vector<ExpertEvent> events;
  int64_t before_ps = 0;
  for (size_t first = 0; first < program.size();) {
    const size_t end = GroupEnd(program, first);
    const TraceOperation& operation = program[first];
    const auto call = operation.stream == 0 ? CallAt(trace, rank, first, end) : std::nullopt;
    if (operation.stream == 0) before_ps += operation.compute_before_ps;
    if (call && operation.all_to_all > 0) {
      events.push_back({operation.all_to_all, before_ps, time_ps(*call)});
      before_ps = 0;
    } else if (call && call->kind != CollectiveKind::kSend) {
      before_ps += time_ps(*call);
    }
    first = end;
  }
  return events;
}

// Ranks come to their AllToAllvs in the order of the numbers.
void AddExpertTimes(const std::vector<GlobalRank>& ranks,
                    const std::vector<std::vector<ExpertEvent>>& events,
                    std::vector<ExpertTime>& times) {
  std::vector<size_t> next(ranks.size());
  std::vector<int64_t> clock_ps(ranks.size());
  while (true) {
    uint32_t number = UINT32_MAX;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (next[i] < events[i].size()) number = std::min(number, events[i][next[i]].number);
    }
    if (number == UINT32_MAX) return;
    int64_t begin_ps = 0;
    int64_t exchange_ps = 0;
    std::vector<size_t> taking_part;
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (next[i] == events[i].size() || events[i][next[i]].number != number) continue;
      const ExpertEvent& event = events[i][next[i]++];
      taking_part.push_back(i);
      clock_ps[i] += event.before_ps;
      begin_ps = std::max(begin_ps, clock_ps[i]);
      exchange_ps = std::max(exchange_ps, event.alone_ps);
      times[ranks[i]].alone_ps += event.alone_ps;
    }
    for (const size_t i : taking_part) {
      times[ranks[i]].wait_ps += begin_ps - clock_ps[i];
      times[ranks[i]].exchange_ps += exchange_ps;
      clock_ps[i] = begin_ps + exchange_ps;
    }
  }
}

}  // namespace

std::vector<ExpertTime> ExpertTimesOf(const Trace& trace,
                                      const std::function<int64_t(const PlannedCall&)>& time_ps) {
  std::vector<ExpertTime> times(trace.rank_count);
  for (const TraceCommunicator& communicator : trace.communicators) {
    if (GroupNameOf(communicator) != "expert") continue;
    std::vector<std::vector<ExpertEvent>> events;
    for (const GlobalRank rank : communicator.ranks) {
      events.push_back(ExpertEventsOf(trace, rank, time_ps));
    }
    AddExpertTimes(communicator.ranks, events, times);
  }
  return times;
}

std::string GroupNameOf(const TraceCommunicator& communicator) {
  return communicator.name.substr(0, communicator.name.find(' '));
}

void ForEachCall(const Trace& trace, GlobalRank rank,
                 const std::function<void(const PlannedCall&)>& visit) {
  const std::vector<TraceOperation>& program = trace.operations[rank];
  std::optional<PlannedCall> last;
  for (size_t first = 0; first < program.size();) {
    const size_t end = GroupEnd(program, first);
    const auto call = CallAt(trace, rank, first, end);
    if (call && call != last) {
      visit(*call);
      last = call;
    }
    first = end;
  }
}

RankTimeline TimelineOf(const Trace& trace, GlobalRank rank,
                        const std::function<int64_t(const PlannedCall&)>& time_ps) {
  const std::vector<TraceOperation>& program = trace.operations[rank];
  RankTimeline timeline;
  std::vector<int64_t> end_ps(program.size());
  std::map<uint32_t, int64_t> stream_ps;
  int64_t last_ps = 0;
  for (size_t first = 0; first < program.size();) {
    const size_t end = GroupEnd(program, first);
    const TraceOperation& operation = program[first];
    const int64_t after_ps = operation.after == 0 ? 0 : end_ps[operation.after - 1];
    int64_t taken_ps = operation.compute_before_ps;
    if (operation.stream == 0) timeline.compute_ps += taken_ps;
    const auto call = CallAt(trace, rank, first, end);
    if (call && call->kind != CollectiveKind::kSend) {
      const int64_t call_ps = time_ps(*call);
      (operation.stream == 0 ? timeline.blocking_ps : timeline.beside_ps) += call_ps;
      if (operation.stream == 0 &&
          GroupNameOf(trace.communicators[call->communicator]) == "expert") {
        timeline.expert_ps += call_ps;
      }
      taken_ps += call_ps;
    }
    int64_t& stream = stream_ps[operation.stream];
    if (operation.stream == 0 && after_ps > stream &&
        program[operation.after - 1].kind == CollectiveKind::kCompute) {
      timeline.wait_ps += after_ps - stream;
    }
    stream = std::max(stream, after_ps) + taken_ps;
    for (size_t i = first; i < end; ++i) end_ps[i] = stream;
    last_ps = std::max(last_ps, stream);
    first = end;
  }
  timeline.exposed_ps = last_ps - timeline.compute_ps - timeline.blocking_ps - timeline.wait_ps;
  return timeline;
}

}  // namespace railyard
