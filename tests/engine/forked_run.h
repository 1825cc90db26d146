// SPDX-License-Identifier: GPL-2.0-only
// ns-3's choice of a simulator is process-wide and counters such as packet uids never restart, so a
// comparison of two implementations runs each in a fresh child process.
#pragma once

#include <functional>
#include <string>

namespace railyard {

enum class Implementation { kNs3Default, kFabric };

// Runs `program` in a child whose simulator is `implementation`, and returns what it appended to
// its argument. A child that dies is a test failure and gives what it had not yet said: nothing.
std::string RunForked(Implementation implementation,
                      const std::function<void(std::string& trace)>& program);

// The first line in which two traces differ, with its number; empty if they are equal. (A
// comparison of whole traces would print megabytes.)
std::string FirstDifference(const std::string& expected, const std::string& actual);

}  // namespace railyard
