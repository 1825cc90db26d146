// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/units/units.h"

namespace railyard {

// What ends a run in which nothing goes on.
struct WatchdogSettings {
  int64_t no_progress_ps = 0;              // of simulated time, while a collective runs; 0: none
  int64_t no_progress_real_ps = kNeverPs;  // of real time
};

}  // namespace railyard
