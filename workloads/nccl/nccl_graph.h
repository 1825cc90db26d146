// SPDX-License-Identifier: GPL-2.0-only
// What NCCL's graph search (src/graph/search.cc) finds on a communicator's servers, as its tuner
// wants it. Not the search: its outcome for the layouts it was run for, and a rule in the same
// spirit for others.
#pragma once

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_tuner.h"

namespace railyard {

// Precondition: at least two ranks. `mesh_rings`: how many there are where NVLinks lead from GPU to
// GPU, else 0; `pcie_ring_gb_per_s`: of the ring within a server where there is no NVLink, else 0.
TunerPlatform SearchedPlatform(const CommunicatorLayout& layout, uint32_t mesh_rings = 0,
                               double pcie_ring_gb_per_s = 0);

}  // namespace railyard
