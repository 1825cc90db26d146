// SPDX-License-Identifier: GPL-2.0-only
// Returns the numbers of CTAs of NVLS and NVLSTree and the sizes of their chunks before they shrink
// for small calls (src/transport/nvls.cc: NVLS_NCHANNELS_SM90, _SM100 and _SM100_NVL; from 2.30 on
// ncclNvlsTuning and ncclNvlsTreeSm100Tuning).
#pragma once

#include <cstdint>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

struct NvlsTuning {
  uint32_t channel_count = 0;
  uint64_t chunk_bytes = 0;           // of one head
  uint64_t tree_chunk_bytes = 0;      // for NVLSTree
  uint64_t tree_chunk_bytes_max = 0;  // an upper bound for NVLSTree
};

// Returns NCCL's values. `gpus_per_node` is the smallest number of the communicator's GPUs on a
// node.
NvlsTuning NvlsTuningOf(const CommunicatorLayout& layout, uint32_t gpus_per_node,
                        const NcclSettings& settings);

}  // namespace railyard
