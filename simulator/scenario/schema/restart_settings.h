// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/units/server_index.h"
#include "workloads/programs/checkpoints.h"

namespace railyard {

// Describes the restart of a failed job, which may be one part of several: all of its ranks are
// ended, and it restarts from its last checkpoint.
struct RestartSettings {
  enum class Detection : uint8_t {
    kLauncher,  // the launcher ends all ranks when the first reports its error
    kWatchdog,  // every rank waits until its collective has timed out
  };

  bool restarts = false;
  // The checkpoints in the programs of the part; if there are none, it restarts from its beginning.
  CheckpointPlaces checkpoints;
  uint64_t checkpoint_count = 0;
  int64_t save_ps = 0;     // for which all ranks stop at a checkpoint
  int64_t load_ps = 0;     // before the first operation after a restart
  int64_t requeue_ps = 0;  // from the end of the last rank until processes run again
  Detection detection = Detection::kLauncher;
  uint32_t restarts_max = 0;
  std::vector<ServerIndex> spare_servers;  // without ranks, in the order in which they are used
};

}  // namespace railyard
