// SPDX-License-Identifier: GPL-2.0-only
// Runs functions in forked copies of this process, a limited number at a time. A copy has what this
// process has in memory, and hands over what it found.
#pragma once

#include <cstddef>
#include <functional>

#include "simulator/processes/handover.h"

namespace railyard {

// Describes a copy that has ended.
struct EndedCopy {
  size_t index = 0;  // of its work
  // The status is as in a shell: 128 + signal if a signal ended the copy.
  int status = 0;
  Handover& handover;  // has what the copy put
};

// Calls `work` with each index below `count` in a separate copy, at most `at_once` copies at a
// time. A copy ends with status 0, or prints the exception and ends with 1 if `work` throws one.
// `on_end` is called in this process as each copy ends. Throws EnvironmentError if a copy cannot be
// made, and Interrupted, after ending all of them, if a signal requests the end. Precondition:
// `at_once` is at least 1.
void RunInCopies(size_t count, size_t at_once,
                 const std::function<void(size_t index, Handover& handover)>& work,
                 const std::function<void(const EndedCopy& copy)>& on_end);

}  // namespace railyard
