// SPDX-License-Identifier: GPL-2.0-only
// Holds a schedule in GOAL, the language of LogGOPSim, whose text and binary forms have the same
// contents.
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
  uint32_t line = 0;                     // in the text; 0 in the binary form
  std::vector<uint32_t> waits_for = {};  // operations of the rank that must end before it begins
};

struct GoalSchedule {
  std::vector<std::vector<GoalOperation>> ranks;
};

// Makes `operation` wait until `on` of the same rank has begun, not until it has ended. A new
// operation, a calc of 0 at the end of the list, takes over the dependencies of `on`, and both wait
// for it.
class GoalStarts {
 public:
  explicit GoalStarts(std::vector<GoalOperation>& operations) : operations_(operations) {}
  // Creates the calc for `on`. Must be called for all such operations before any dependency is
  // added.
  void Make(uint32_t on);
  void WaitForStart(uint32_t operation, uint32_t on);
  void WaitForEnd(uint32_t operation, uint32_t on);

 private:
  // Returns the operation that has the dependencies of `operation`: itself or its calc of 0.
  uint32_t WaiterOf(uint32_t operation) const;

  std::vector<GoalOperation>& operations_;
  std::vector<uint32_t> start_of_;  // by operation; 0 for none
};

}  // namespace railyard
