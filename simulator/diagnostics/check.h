// SPDX-License-Identifier: GPL-2.0-only
// The program is wrong: SIM_CHECK stops it, in every build, saying where, at which virtual time,
// and with which command line to see it again. User input must never reach one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace railyard {

// What a failed check prints beside the condition. Set once, by the program.
struct CheckContext {
  std::string replay_command;                // how to run this again
  std::function<int64_t()> virtual_time_ps;  // empty before time zero
};
void SetCheckContext(CheckContext context);

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& detail);

}  // namespace railyard

// SIM_CHECK(condition, detail): `detail` is a std::string expression, evaluated only on failure.
#define SIM_CHECK(condition, detail)                                     \
  do {                                                                   \
    if (__builtin_expect(!(condition), 0)) {                             \
      ::railyard::CheckFailed(__FILE__, __LINE__, #condition, (detail)); \
    }                                                                    \
  } while (false)
