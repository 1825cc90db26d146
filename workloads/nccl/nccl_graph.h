// SPDX-License-Identifier: GPL-2.0-only
// Gives NCCL's tuner the result of NCCL's graph search (src/graph/search.cc) on a communicator's
// servers. The search itself is not modelled: its results are recorded for the layouts on which it
// was run, and a rule of the same kind covers others.
#pragma once

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_tuner.h"

namespace railyard {

// Returns the result of the search. `mesh_rings` is the number of rings if NVLinks join GPUs
// without NVSwitches, else 0; `pcie_ring_gb_per_s` is the speed in GB/s of the ring within a server
// without NVLink, else 0. Precondition: at least two ranks.
TunerPlatform SearchedPlatform(const CommunicatorLayout& layout, uint32_t mesh_rings = 0,
                               double pcie_ring_gb_per_s = 0);

}  // namespace railyard
