// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_trace_builder.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace/logged_graph.h"

namespace railyard {

LogTraceBuilder::LogTraceBuilder(const PlacedCalls& calls, ImportReport& report)
    : calls_(calls), report_(report) {
  trace_.origin = report_.format;
  trace_.nccl_version = report_.nccl_version;
  trace_.rank_count = calls_.placement().rank_count;
  for (const ImportedFile& file : report_.files) trace_.source_files.push_back(file.path);
  trace_.operations.resize(trace_.rank_count);
}

void LogTraceBuilder::AddCalls(const std::vector<uint32_t>& group_of, bool with_times) {
  // In the order of the log, so that communicators are numbered as they are first used.
  streams_.resize(trace_.rank_count);
  clocks_.resize(trace_.rank_count);
  for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
    trace_.operations[rank].reserve(calls_.by_rank()[rank].size());
  }
  uint64_t calls_added = 0;
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const LoggedCall& call = calls_[i];
    if (call.dropped) continue;
    const GlobalRank rank = calls_.RankOfHandle(call.handle);
    TraceOperation operation;
    operation.kind = call.kind;
    operation.communicator = CommunicatorOf(calls_.CommunicatorOf(call));
    operation.count = call.count;
    operation.datatype = call.datatype;
    (IsP2p(call) ? operation.peer : operation.root) = call.root_or_peer;
    operation.stream = StreamOf(rank, call.stream);
    operation.group = group_of[i];
    operation.in_place = call.in_place;
    operation.algorithm = call.algorithm;
    operation.protocol = call.protocol;
    operation.source_file = call.file;
    operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(call.line, UINT32_MAX));
    if (with_times) AddGap(call, rank, operation);
    trace_.operations[rank].push_back(operation);
    ++calls_added;
  }
  if (with_times) NoteTimes(calls_added);
}

uint32_t LogTraceBuilder::StreamOf(GlobalRank rank, uint64_t stream) {
  auto& numbers = streams_[rank];
  return numbers.try_emplace(stream, static_cast<uint32_t>(numbers.size())).first->second;
}

void LogTraceBuilder::AddGap(const LoggedCall& call, GlobalRank rank, TraceOperation& operation) {
  constexpr uint64_t kHost = UINT64_MAX;           // no address of a stream
  constexpr int64_t kGapNsMax = int64_t{1} << 50;  // 13 days
  HostClock& clock = clocks_[rank];
  const bool is_within_group = operation.group != 0 && operation.group == clock.last_group;
  clock.last_group = operation.group;
  if (call.time_ns) {
    ++calls_with_time_;
    const int64_t gap_ns = *call.time_ns - clock.last_ns.value_or(*call.time_ns);
    if (gap_ns < 0 || gap_ns > kGapNsMax) ++calls_set_back_;
    // A group begins with its first call; what passes within it is before what follows.
    if (!is_within_group || gap_ns < 0) clock.last_ns = call.time_ns;
    if (!is_within_group && gap_ns > 0 && gap_ns <= kGapNsMax) {
      TraceOperation gap;
      gap.kind = CollectiveKind::kCompute;
      gap.count = 0;
      gap.stream = StreamOf(rank, kHost);
      gap.compute_before_ps = gap_ns * kPsPerNs;
      trace_.operations[rank].push_back(gap);
      clock.last_gap = static_cast<uint32_t>(trace_.operations[rank].size());
    }
  }
  operation.after = clock.last_gap;
}

void LogTraceBuilder::NoteTimes(uint64_t calls_added) {
  if (calls_.calls_with_other_time() > 0) {
    report_.assumed.push_back(
        fmt::format("{} calls have a time in a format that is not read (expected [YYYY-MM-DD "
                    "HH:MM:SS.DECIMALS] "
                    "before HOST:PID:TID, or seconds since 1970): no time passes before them",
                    calls_.calls_with_other_time()));
  }
  if (calls_with_time_ == 0) return;
  constexpr int kDecimalsOfNs = 9;
  int64_t resolution_ps = 1'000;
  for (int i = calls_.time_decimals(); i < kDecimalsOfNs; ++i) resolution_ps *= 10;
  report_.assumed.push_back(fmt::format(
      "{} of {} calls have time stamps of their host, to {}: a call does not begin before as much "
      "time has passed since its rank's first one. The host is taken not to wait for the GPU in "
      "between, and ranks to begin together: clocks of hosts are not compared (--ignore-times "
      "leaves the times out)",
      calls_with_time_, calls_added, FormatDuration(resolution_ps)));
  if (calls_set_back_ > 0) {
    report_.assumed.push_back(
        fmt::format("{} time stamps are earlier than those of the calls before, or days later: no "
                    "time has passed there",
                    calls_set_back_));
  }
}

uint32_t LogTraceBuilder::CommunicatorOf(uint32_t communicator) {
  const auto [entry, is_new] = communicator_of_.try_emplace(
      communicator, static_cast<uint32_t>(trace_.communicators.size()));
  if (is_new) {
    const JoinedCommunicator& joined = calls_.placement().communicators[communicator];
    trace_.communicators.push_back({.name = joined.name, .ranks = GlobalRanksOf(joined.ranks)});
    StateGraph(joined, trace_.communicators.back());
  }
  return entry->second;
}

void LogTraceBuilder::StateGraph(const JoinedCommunicator& communicator,
                                 TraceCommunicator& stated) {
  std::vector<const LoggedGraph*> by_rank(communicator.size);
  bool has_rings = false;
  bool has_trees = false;
  for (const auto& [rank, handle] : communicator.handle_of_rank) {
    const LoggedGraph& graph = calls_.Handle(handle).graph;
    by_rank[rank] = &graph;
    has_rings = has_rings || graph.has_rings();
    has_trees = has_trees || !graph.parent.empty();
  }
  stated.rings = RingsOf(by_rank);
  stated.tree_parents = TreeParentsOf(by_rank);
  const auto note = [&](bool has_lines, bool is_stated, std::string_view what) {
    if (!has_lines || is_stated) return;
    report_.assumed.push_back(fmt::format(
        "{} of communicator {} are those of NCCL's rules: the lines of its ranks do not give all",
        what, communicator.name));
  };
  note(has_rings, !stated.rings.empty(), "rings");
  note(has_trees, !stated.tree_parents.empty(), "trees");
}

}  // namespace railyard
