// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_trace_builder.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

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

void LogTraceBuilder::AddCalls(const std::vector<uint32_t>& group_of) {
  // In the order of the log, so that communicators are numbered as they are first used.
  std::vector<std::unordered_map<uint64_t, uint32_t>> streams(trace_.rank_count);
  for (uint32_t i = 0; i < calls_.size(); ++i) {
    const LoggedCall& call = calls_[i];
    if (call.dropped) continue;
    const uint32_t rank = calls_.RankOfHandle(call.handle);
    auto& streams_of_rank = streams[rank];
    TraceOperation operation;
    operation.kind = call.kind;
    operation.communicator = CommunicatorOf(calls_.CommunicatorOf(call));
    operation.count = call.count;
    operation.datatype = call.datatype;
    (IsP2p(call) ? operation.peer : operation.root) = call.root_or_peer;
    operation.stream =
        streams_of_rank.try_emplace(call.stream, static_cast<uint32_t>(streams_of_rank.size()))
            .first->second;
    operation.group = group_of[i];
    operation.in_place = call.in_place;
    operation.algorithm = call.algorithm;
    operation.protocol = call.protocol;
    operation.source_file = call.file;
    operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(call.line, UINT32_MAX));
    trace_.operations[rank].push_back(operation);
  }
}

uint32_t LogTraceBuilder::CommunicatorOf(uint32_t communicator) {
  const auto [entry, is_new] = communicator_of_.try_emplace(
      communicator, static_cast<uint32_t>(trace_.communicators.size()));
  if (is_new) {
    const JoinedCommunicator& joined = calls_.placement().communicators[communicator];
    trace_.communicators.push_back({.name = joined.name, .ranks = joined.ranks});
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
