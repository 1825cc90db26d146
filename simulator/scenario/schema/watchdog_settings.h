// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/units/units.h"

namespace railyard {

// What ends a run in which nothing goes on.
struct WatchdogSettings {
  int64_t no_progress_ps = 0;              // of simulated time, while a collective runs; 0: none
  int64_t no_progress_real_ps = kNeverPs;  // of real time
  // How ranks that hang since another's error are ended, where the job does not begin again.
  RestartSettings::Detection detection = RestartSettings::Detection::kLauncher;
};

}  // namespace railyard
