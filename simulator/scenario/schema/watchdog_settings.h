// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/scenario/schema/restart_settings.h"
#include "simulator/units/units.h"

namespace railyard {

// Says when a run without progress is ended.
struct WatchdogSettings {
  int64_t no_progress_ps = 0;  // of simulated time, while a collective runs; 0 for no limit
  int64_t no_progress_real_ps = kNeverPs;  // of real time
  // Says how ranks that hang because of another rank's error are ended if the job does not restart.
  RestartSettings::Detection detection = RestartSettings::Detection::kLauncher;
};

}  // namespace railyard
