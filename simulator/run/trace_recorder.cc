// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/trace_recorder.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/run/result_recorder.h"
#include "simulator/units/mix64.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// An upper bound of what a call takes in the file.
constexpr uint64_t kBytesPerCall = 256;
constexpr uint32_t kChannelBits = 64;

uint64_t FlowOf(ConnectionId connection, CollectiveIndex collective, uint64_t number) {
  return Mix64(Mix64(uint64_t{connection} << 32 | collective) ^ number);
}

const char* SliceName(const PathTracer::Slice& slice) {
  if (slice.receives.empty()) return slice.sends.empty() ? "copy" : "send";
  return slice.sends.empty() ? "receive" : "receive and send";
}

}  // namespace

TraceRecorder::TraceRecorder(const std::string& path, const FabricGraph& graph, const Job& job,
                             ReplayEngine& replay)
    : graph_(graph), job_(job), replay_(replay), trace_(path), processes_(job.rank_count) {
  const uint64_t bytes = replay.ledger().calls_left() * kBytesPerCall;
  call_step_ = static_cast<uint32_t>(1 + bytes / kCallBytesMax);
}

void TraceRecorder::Start() {
  is_running_ = true;
  replay_.hooks().on_call_end = [this](const Call& call, int64_t begin_ps, int64_t end_ps) {
    if (is_running_) OnCallEnd(call, begin_ps, end_ps);
  };
  LaneExecutor& executor = replay_.executor();
  executor.paths().WatchSlices([this](const PathTracer::Slice& slice) {
    if (is_running_ && !replay_.streams().is_ahead()) OnSlice(slice);
  });
  executor.proxies().Watch([this](MessageEvent event, ConnectionId connection, uint32_t slot) {
    if (is_running_ && !replay_.streams().is_ahead()) OnMessage(event, connection, slot);
  });
}

// --- Tracks --------------------------------------------------------------------------------------

TraceRecorder::Track TraceRecorder::ProcessOf(GlobalRank rank) {
  Track& track = processes_[rank];
  if (track == 0) {
    track = trace_.AddProcess(
        static_cast<int32_t>(rank + 1),
        fmt::format("rank {} ({})", rank, graph_.device(graph_.gpus()[rank]).name));
  }
  return track;
}

TraceRecorder::Track TraceRecorder::StreamTrack(const Call& call) {
  const uint32_t stream = replay_.calls().OperationOf(call).stream;
  Track& track = streams_[{call.rank, stream}];
  if (track == 0) {
    track = trace_.AddTrack(ProcessOf(call.rank), fmt::format("stream {}", stream));
  }
  return track;
}

TraceRecorder::Track TraceRecorder::ChannelTrack(const PathTracer::Slice& slice) {
  const CommunicatorIndex communicator = job_.collectives[slice.collective].communicator;
  Track& track = channels_[{slice.gpu, communicator, slice.channel, slice.lane_number}];
  if (track != 0) return track;
  std::string name =
      fmt::format("{} channel {}", job_.communicators[communicator].name, slice.channel);
  if (slice.lane_number > 0) name += fmt::format(" lane {}", slice.lane_number);
  return track = trace_.AddTrack(ProcessOf(RankOn(slice.gpu)), name);
}

TraceRecorder::Track TraceRecorder::MessageTrack(Messages& messages, ConnectionId id,
                                                 uint32_t slot) {
  Track& track = messages.tracks[slot];
  if (track != 0) return track;
  const Connection& connection = replay_.executor().connection_table().connections()[id];
  return track = trace_.AddTrack(ProcessOf(RankOn(connection.injecting_gpu)),
                                 fmt::format("proxy, to rank {}", connection.to_gpu));
}

// --- Calls ---------------------------------------------------------------------------------------

PerfettoTrace::Arguments TraceRecorder::ArgumentsOf(CollectiveIndex id, int64_t begin_ps) const {
  const JobCollective& collective = job_.collectives[id];
  return {{"collective", uint64_t{id}},
          {"communicator", std::string_view(job_.communicators[collective.communicator].name)},
          {"bytes", collective.bytes},
          {"ranks", uint64_t{collective.rank_count}},
          {"begin_ps", begin_ps}};
}

void TraceRecorder::OnCallEnd(const Call& call, int64_t begin_ps, int64_t end_ps) {
  ++calls_;
  const CollectiveIndex id = replay_.calls().CollectiveNumberOf(call);
  if (!ShowsCallsOf(id)) return;
  ++calls_shown_;
  PerfettoTrace::Arguments arguments = ArgumentsOf(id, begin_ps);
  arguments.emplace_back("duration_ps", end_ps - begin_ps);
  arguments.emplace_back("replayed", replay_.ledger().times()[id].replayed_by != ReplayRule::kNone);
  trace_.AddSlice(StreamTrack(call), begin_ps, end_ps, KindName(job_.collectives[id]), arguments);
}

void TraceRecorder::AddUnfinishedCalls() {
  for (const StreamRunner::Running& running : replay_.streams().running()) {
    if (running.is_free()) continue;
    ++calls_;
    const CollectiveIndex id = replay_.calls().CollectiveNumberOf(running.call);
    if (!ShowsCallsOf(id)) continue;
    ++calls_shown_;
    PerfettoTrace::Arguments arguments = ArgumentsOf(id, running.start_ps);
    arguments.emplace_back("unfinished", true);
    trace_.AddOpenSlice(StreamTrack(running.call), running.start_ps, KindName(job_.collectives[id]),
                        arguments);
  }
}

// --- Slices --------------------------------------------------------------------------------------

bool TraceRecorder::Shows(CollectiveIndex collective, uint32_t channel) {
  if (slice_bytes_ >= kSliceBytesMax) return false;
  Shown& of = shown_[collective];
  const uint64_t bit = uint64_t{1} << channel % kChannelBits;
  if ((of.decided & bit) == 0) {
    of.decided |= bit;
    // A quarter at once, the rest as the run goes on.
    const uint64_t share = kSliceBytesMax / 4 + kSliceBytesMax * 3 / 4 *
                                                    replay_.ledger().collectives_ended() /
                                                    std::max<size_t>(1, job_.collectives.size());
    if (slice_bytes_ < share) of.shown |= bit;
  }
  return (of.shown & bit) != 0;
}

PerfettoFlows TraceRecorder::FlowsOf(const PathTracer::Slice& slice) {
  PerfettoFlows flows;
  // A round waits for the next message of each of its connections, and its slices take them.
  for (const ConnectionId id : slice.receives) {
    Messages& messages = messages_[id];
    if (std::exchange(messages.received_collective, slice.collective) != slice.collective) {
      messages.received = 0;
    }
    const uint64_t flow = FlowOf(id, slice.collective, messages.received);
    const MessageSlots& slots = replay_.executor().connection_table().slots(id);
    const bool is_waited_for = slots.time_ps[slots.consumed % kConnectionSlots] == slice.start_ps &&
                               slice.start_ps > slice.free_ps;
    if (is_waited_for) flows.ends.push_back(flow);
  }
  for (const ConnectionId id : slice.own_receives) ++messages_[id].received;
  for (const ConnectionId id : slice.own_sends) {
    Messages& messages = messages_[id];
    if (std::exchange(messages.sent_collective, slice.collective) != slice.collective) {
      messages.sent = 0;
    }
    flows.begins.push_back(FlowOf(id, slice.collective, messages.sent++));
  }
  return flows;
}

void TraceRecorder::OnSlice(const PathTracer::Slice& slice) {
  if (!slice.is_empty) ++slices_;
  if (!Shows(slice.collective, slice.channel)) return;
  const PerfettoFlows flows = FlowsOf(slice);
  if (slice.is_empty) return;
  ++slices_shown_;
  const uint64_t before = trace_.bytes();
  trace_.AddSlice(ChannelTrack(slice), slice.start_ps, slice.done_ps, SliceName(slice),
                  {{"collective", uint64_t{slice.collective}},
                   {"bytes", uint64_t{slice.bytes}},
                   {"begin_ps", slice.start_ps},
                   {"duration_ps", slice.done_ps - slice.start_ps}},
                  flows);
  slice_bytes_ += trace_.bytes() - before;
}

void TraceRecorder::OnMessage(MessageEvent event, ConnectionId id, uint32_t slot) {
  const auto found = messages_.find(id);
  if (found == messages_.end()) return;
  Messages& messages = found->second;
  const CollectiveIndex collective =
      replay_.executor().connection_table().connections()[id].collective;
  // Its slices are not shown.
  if (messages.sent_collective != collective || slice_bytes_ >= kSliceBytesMax) return;
  const int64_t now_ps = replay_.now_ps();
  const uint64_t before = trace_.bytes();
  switch (event) {
    case MessageEvent::kQueued:
      messages.queued_ps[slot] = now_ps;
      messages.posted_ps[slot] = 0;
      return;
    case MessageEvent::kPosted:
      if (messages.queued_ps[slot] == 0) return;
      messages.posted_ps[slot] = now_ps;
      trace_.AddSlice(MessageTrack(messages, id, slot), messages.queued_ps[slot], now_ps, "post",
                      {{"collective", uint64_t{collective}}});
      break;
    case MessageEvent::kCompleted:
      if (messages.posted_ps[slot] == 0) return;
      trace_.AddSlice(MessageTrack(messages, id, slot), messages.posted_ps[slot], now_ps,
                      "in flight", {{"collective", uint64_t{collective}}});
      messages.queued_ps[slot] = messages.posted_ps[slot] = 0;
      break;
  }
  slice_bytes_ += trace_.bytes() - before;
}

// --- The end -------------------------------------------------------------------------------------

void TraceRecorder::AddFaults(const RunResult& result) {
  if (result.faults.empty()) return;
  const Track process = trace_.AddProcess(static_cast<int32_t>(job_.rank_count) + 2, "faults");
  for (const FaultResult& fault : result.faults) {
    const Track track = trace_.AddTrack(process, fault.name);
    const PerfettoTrace::Arguments arguments = {{"kind", std::string_view(fault.kind)},
                                                {"target", std::string_view(fault.target)},
                                                {"begins", fault.begins},
                                                {"dropped_packets", fault.dropped_packets}};
    if (fault.begins > 0) trace_.AddInstant(track, fault.from_ps, "begins", arguments);
    if (fault.begins > 0 && fault.until_ps <= result.simulated_time_ps) {
      trace_.AddInstant(track, fault.until_ps, "ends", arguments);
    }
  }
}

void TraceRecorder::AddCounters(const RunResult& result) {
  const TimeSeries& series = result.series;
  if (series.bins().empty()) return;
  const Track process = trace_.AddProcess(static_cast<int32_t>(job_.rank_count) + 1, "network");
  struct Counter {
    Track track = 0;
    double value = 0;
  };
  std::vector<Counter> utilization(result.links.size());
  std::vector<Counter> queue(result.links.size());
  const auto set = [&](Counter& counter, uint32_t link, const char* what, const char* unit,
                       int64_t time_ps, double value) {
    if (value == counter.value) return;
    if (counter.track == 0) {
      counter.track =
          trace_.AddCounter(process, fmt::format("{} {}", result.links[link].name, what), unit);
    }
    counter.value = value;
    trace_.AddValue(counter.track, time_ps, value);
  };
  const TimeBin at_rest{.begin_ps = series.end_ps(), .end_ps = series.end_ps()};  // behind the last
  for (size_t bin = 0; bin <= series.bins().size(); ++bin) {
    const TimeBin& of_bin = bin < series.bins().size() ? series.bins()[bin] : at_rest;
    const int64_t begin_ps = of_bin.begin_ps;
    auto row = of_bin.links.begin();
    for (uint32_t link = 0; link < result.links.size(); ++link) {
      LinkBin of;
      if (row != std::default_sentinel && row->link == link) {
        of = *row;
        ++row;
      }
      set(utilization[link], link, "utilization", "%", begin_ps,
          100 * UtilizationOf(of, result.links[link].rate_bps, of_bin.end_ps - begin_ps));
      set(queue[link], link, "queue", "bytes", begin_ps, static_cast<double>(of.queue_max_bytes));
    }
  }
}

void TraceRecorder::NoteWhatIsLeftOut(RunResult& result) const {
  if (calls_shown_ < calls_) {
    result.notes.push_back(fmt::format(
        "trace.perfetto-trace has every {}th collective: {} of {}, to keep to its budget",
        call_step_, Counted(calls_shown_, "call"), Counted(calls_, "call")));
  }
  if (slices_shown_ < slices_) {
    result.notes.push_back(
        fmt::format("trace.perfetto-trace has {} of {} that were simulated, by whole channels of "
                    "collectives, to keep to its budget",
                    Counted(slices_shown_, "slice"), Counted(slices_, "slice")));
  }
}

void TraceRecorder::Finish(RunResult& result) {
  AddUnfinishedCalls();
  Stop();
  AddFaults(result);
  AddCounters(result);
  trace_.Close();
  NoteWhatIsLeftOut(result);
}

}  // namespace railyard
