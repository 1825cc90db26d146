// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "simulator/scenario/restart_settings.h"
#include "simulator/scenario/workload_loader.h"

namespace railyard {

// `restart`. Puts the time that checkpoints take into the programs of the job, before the first
// operation of the rounds they precede.
RestartSettings LoadRestart(const ProtoCursor& scenario, LoadedWorkload& workload,
                            Diagnostics& diagnostics);

}  // namespace railyard
