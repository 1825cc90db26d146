// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "workloads/nccl_channels.h"

namespace railyard {

// Of `nccl`: by what servers are joined. Refuses what has no effect with it. Takes a cursor on the
// whole scenario.
NetPlugin LoadNet(const ProtoCursor& scenario, Diagnostics& diagnostics);

}  // namespace railyard
