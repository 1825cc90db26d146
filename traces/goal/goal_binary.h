// SPDX-License-Identifier: GPL-2.0-only
// GOAL as LogGOPSim's txt2bin writes it (src/LogGOPSim/Parser.hpp): a magic number, the number of
// ranks, where each rank lies, and for each rank its operations of 39 bytes and, behind them, who
// waits for whom. All numbers are little-endian, without padding.
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

// Copies up to `bytes` of what follows and returns how many.
using GoalBytes = std::function<size_t(char* to, size_t bytes)>;

// Reads to the end of the last rank; memory grows with what was read, whatever lengths it states.
// nullopt after an error, which names the byte.
std::optional<GoalSchedule> ReadGoalBinary(const GoalBytes& bytes, const std::string& file,
                                           Diagnostics& diagnostics);

// What txt2bin makes of the schedule's text.
std::string GoalBinaryOf(const GoalSchedule& schedule);
// The text: operations in order, labels l1, l2, ..., requires lines behind what they name.
std::string GoalTextOf(const GoalSchedule& schedule);

}  // namespace railyard
