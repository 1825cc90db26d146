// SPDX-License-Identifier: GPL-2.0-only
// A schedule in GOAL, the language of LogGOPSim, as its text and its binary form have it.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

inline constexpr uint32_t kGoalAny = UINT32_MAX;  // "-1": any peer, any tag

enum class GoalKind : uint8_t { kSend = 1, kRecv = 2, kCalc = 3 };  // the binary form's numbers

struct GoalOperation {
  GoalKind kind = GoalKind::kCalc;
  uint32_t peer = 0;
  uint64_t size = 0;  // bytes, or nanoseconds of computation
  uint32_t tag = 0;
  uint32_t line = 0;                     // of the text; 0 in the binary form
  std::vector<uint32_t> waits_for = {};  // operations of the rank that are done before it begins
};

struct GoalSchedule {
  std::vector<std::vector<GoalOperation>> ranks;
};

// Makes `operation` wait until `on` of the same rank has begun, not until it is done: another
// operation, a calc of 0 at the end of the list, takes what `on` waits for, and both wait for that.
class GoalStarts {
 public:
  explicit GoalStarts(std::vector<GoalOperation>& operations) : operations_(operations) {}
  // All starts of others have to be made before any dependency is added.
  void Make(uint32_t on);
  void WaitForStart(uint32_t operation, uint32_t on);
  void WaitForEnd(uint32_t operation, uint32_t on);

 private:
  // What waits in place of the operation.
  uint32_t WaiterOf(uint32_t operation) const;

  std::vector<GoalOperation>& operations_;
  std::vector<uint32_t> start_of_;  // by operation; 0: none
};

}  // namespace railyard
