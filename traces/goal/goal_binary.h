// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes GOAL in the form of LogGOPSim's txt2bin (src/LogGOPSim/Parser.hpp): a magic
// number, the number of ranks, the position of each rank, and for each rank its operations of 39
// bytes followed by the lists of their dependents. All numbers are little-endian, without padding.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/goal/goal_schedule.h"

namespace railyard {

inline constexpr uint64_t kGoalMagic = 4223;
inline constexpr uint64_t kGoalMagicUsed = 2342;  // a run of the simulator has overwritten the file

// Copies up to `bytes` of the following bytes and returns their number.
using GoalBytes = std::function<size_t(char* to, size_t bytes)>;

// Reads to the end of the last rank. Memory grows with the bytes read, not with the lengths that
// they state. Returns nullopt after an error, which names the byte.
std::optional<GoalSchedule> ReadGoalBinary(const GoalBytes& bytes, const std::string& file,
                                           Diagnostics& diagnostics);

// Returns the bytes that txt2bin would make of the schedule's text.
std::string GoalBinaryOf(const GoalSchedule& schedule);
// Returns the schedule as text: operations in order, labels l1, l2, ..., requires lines after the
// operations that they name.
std::string GoalTextOf(const GoalSchedule& schedule);

}  // namespace railyard
