// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/units/units.h"

namespace railyard {

// Ends a run without progress.
struct WatchdogSettings {
  int64_t no_progress_ps = 0;              // of simulated time, while a collective runs; 0: none
  int64_t no_progress_real_ps = kNeverPs;  // of real time
  // How ranks that hang because of another's error are ended if the job does not restart.
  RestartSettings::Detection detection = RestartSettings::Detection::kLauncher;
};

}  // namespace railyard
