// SPDX-License-Identifier: GPL-2.0-only
// Prints the progress of a run on standard error: on a terminal one line that changes every second,
// else a line every ten seconds.
#pragma once

#include <string>
#include <vector>

#include "simulator/cli/status_line.h"
#include "simulator/run/run_monitor.h"

namespace railyard {

class ProgressLine {
 public:
  // If `is_quiet` is true, the line is printed only when SIGUSR1 requests it.
  explicit ProgressLine(bool is_quiet);

  ProgressOptions Options();
  // Removes the line from a terminal.
  void Clear() { line_.Clear(); }

 private:
  void Show(const RunProgress& progress);

  const bool is_quiet_;
  StatusLine line_;
  RunProgress last_{};
};

// Returns the parts of e.g. "simulated 1.2 ms in 12 s, 40.0 % done, about 18 s left; the fault-free
// run: 1.1 ms, 38.0 % done; 8.1 M hops/s, 10 collectives/s, 75.0 % replayed, 210 MiB". Rates are
// those since `last`; replayed is the share of all collectives so far that were taken from the
// replay cache. The time left is that of the run or of a paired one, whichever takes longer.
std::vector<std::string> ProgressParts(const RunProgress& progress, const RunProgress& last);

}  // namespace railyard
