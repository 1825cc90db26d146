// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs as processes of this machine.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/study/run_study.h"

namespace railyard {

struct LocalOptions {
  uint32_t jobs = 1;                          // runs at a time
  int64_t memory_bytes = 0;                   // that runs may take together
  std::optional<int64_t> time_limit_seconds;  // of each run
};

// Returns the memory of this machine, or of this process's control group, that is free.
int64_t FreeMemoryBytes();

// Returns an executor that starts each run as a process, in the order of RunQueue. A run beyond the
// time limit is ended; one that was killed is run once more alone, because most likely memory ran
// out. Throws Interrupted, after ending all runs, if a signal requests the end.
StudyExecutor LocalExecutor(LocalOptions options);

}  // namespace railyard
