// SPDX-License-Identifier: GPL-2.0-only
// Stops the program if a condition that only a program error can break is false. SIM_CHECK works in
// every build and prints the place, the virtual time, and the command line that repeats the
// failure. User input must never reach one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace railyard {

// Holds what a failed check prints beside the condition. The program sets it once.
struct CheckContext {
  std::string replay_command;                // how to run this again
  std::function<int64_t()> virtual_time_ps;  // empty before time zero
};
void SetCheckContext(CheckContext context);

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);

}  // namespace railyard

// Ends the program if the condition is false. In SIM_CHECK(condition, detail), `detail` is a
// std::string expression that is evaluated only on failure.
#define SIM_CHECK(condition, detail)                                     \
  do {                                                                   \
    if (__builtin_expect(!(condition), 0)) {                             \
      ::railyard::CheckFailed(__FILE__, __LINE__, #condition, (detail)); \
    }                                                                    \
  } while (false)
