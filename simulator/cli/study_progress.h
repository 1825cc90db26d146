// SPDX-License-Identifier: GPL-2.0-only
// Prints the progress of a study on standard error: on a terminal one line that changes with every
// run that ends, else at most one line every ten seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "simulator/cli/status_line.h"
#include "simulator/study/run_study.h"

namespace railyard {

class StudyProgressLine {
 public:
  StudyProgressLine();

  void Show(const StudyProgress& progress);
  // Removes the line from a terminal.
  void Clear() { line_.Clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  StatusLine line_;
  const Clock::time_point begin_;
  Clock::time_point shown_;
};

// Converts a span of real time to picoseconds, for texts of durations. Longer spans become 104
// days.
int64_t InPicoseconds(double seconds);

// Returns the parts of e.g. "12 of 40 runs done (8 of them before), 1 failed, about 30 s left"
// after `seconds`.
std::vector<std::string> StudyProgressParts(const StudyProgress& progress, double seconds);

}  // namespace railyard
