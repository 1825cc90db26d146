// SPDX-License-Identifier: GPL-2.0-only
// Prints the progress of a run on standard error: on a terminal one line that changes every second,
// else a line every ten seconds.
#pragma once

#include <string>

#include "simulator/run/run_monitor.h"

namespace railyard {

class ProgressLine {
 public:
  // `is_quiet`: prints only when SIGUSR1 requests it.
  explicit ProgressLine(bool is_quiet);

  ProgressOptions Options();
  // Ends the line on a terminal.
  void Clear();

 private:
  void Show(const RunProgress& progress);

  const bool is_quiet_;
  const bool is_terminal_;
  bool is_shown_ = false;
  RunProgress last_{};
};

// Returns e.g. "simulated 1.2 ms in 12 s, 40.0 % done, about 18 s left; 10 collectives/s, 8.1 M
// hops/s, 75.0 % replayed, 210 MiB". Rates are those since `last`; replayed is the
// share of all collectives so far that were taken from the replay cache.
std::string ProgressText(const RunProgress& progress, const RunProgress& last);

}  // namespace railyard
