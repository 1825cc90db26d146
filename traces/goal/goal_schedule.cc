// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_schedule.h"

namespace railyard {

void GoalStarts::Make(uint32_t on) {
  start_of_.resize(operations_.size(), 0);
  if (start_of_[on] != 0) return;
  const auto start = static_cast<uint32_t>(operations_.size());
  operations_.push_back({.kind = GoalKind::kCalc, .line = operations_[on].line});
  operations_[on].waits_for.push_back(start);
  start_of_[on] = start;
}

uint32_t GoalStarts::WaiterOf(uint32_t operation) const {
  const bool has_start = operation < start_of_.size() && start_of_[operation] != 0;
  return has_start ? start_of_[operation] : operation;
}

void GoalStarts::WaitForStart(uint32_t operation, uint32_t on) {
  operations_[WaiterOf(operation)].waits_for.push_back(start_of_[on]);
}

void GoalStarts::WaitForEnd(uint32_t operation, uint32_t on) {
  operations_[WaiterOf(operation)].waits_for.push_back(on);
}

}  // namespace railyard
