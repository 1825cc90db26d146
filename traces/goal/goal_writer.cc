// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_writer.h"

#include <utility>

#include "simulator/units/units.h"
#include "traces/dependencies/trace_graph.h"

namespace railyard {
namespace {

GoalOperation GoalOf(GraphOperation&& from) {
  GoalOperation operation;
  operation.waits_for.assign(from.waits_for.begin(), from.waits_for.end());
  if (from.kind == CollectiveKind::kCompute) {
    operation.size = static_cast<uint64_t>(from.duration_ps / kPsPerNs);
    return operation;
  }
  operation.kind = from.kind == CollectiveKind::kSend ? GoalKind::kSend : GoalKind::kRecv;
  operation.peer = from.peer;
  operation.size = from.count;
  operation.tag = static_cast<uint32_t>(from.tag);
  return operation;
}

}  // namespace

std::optional<GoalSchedule> GoalOfTrace(const Trace& trace, const std::string& file,
                                        Diagnostics& diagnostics) {
  auto graph = GraphOfTrace(trace, {.expand_collectives = true, .time_unit_ps = kPsPerNs}, file,
                            diagnostics);
  if (!graph) return std::nullopt;
  GoalSchedule schedule;
  schedule.ranks.resize(graph->ranks.size());
  for (size_t rank = 0; rank < graph->ranks.size(); ++rank) {
    for (GraphOperation& operation : graph->ranks[rank]) {
      schedule.ranks[rank].push_back(GoalOf(std::move(operation)));
    }
  }
  return schedule;
}

}  // namespace railyard
