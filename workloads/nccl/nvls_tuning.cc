// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nvls_tuning.h"

#include <algorithm>

#include "workloads/nccl/nccl_chunking.h"
#include "workloads/nccl/nccl_versions.h"

namespace railyard {
namespace {

constexpr uint32_t kNvlsChannelsHopper = 16;
constexpr uint32_t kNvlsChannelsBlackwell = 32;
constexpr uint32_t kNvlsChannelsOneBlackwellNode = 24;
constexpr uint64_t kNic400Bps = 400'000'000'000ULL;
constexpr uint64_t kNic800Bps = 800'000'000'000ULL;

// Applies ncclNvlsTreeSm100Tuning. It tests for NICs of 48 and 96 GB/s, which is NCCL's bandwidth
// of NICs of 400 and 800 Gb/s. With Grace between a GPU and its NIC the path is longer than PXB.
void TuneTrees(const CommunicatorLayout& layout, uint32_t gpus, NvlsTuning& tuning) {
  const bool is_near_nic = layout.cpu != CommunicatorCpu::kArm;
  const bool has_400 = layout.nic_bps >= kNic400Bps;
  const bool has_800 = layout.nic_bps >= kNic800Bps;
  tuning.chunk_bytes = 128u << 10;
  if (layout.node_count() == 2 && has_400) {
    tuning.channel_count = 32;
    tuning.tree_chunk_bytes_max = 128u << 10;
    if (gpus <= 4) {
      tuning.chunk_bytes = tuning.tree_chunk_bytes_max = 256u << 10;
    } else if (gpus >= 16 || (gpus <= 8 && is_near_nic && !has_800)) {
      tuning.tree_chunk_bytes_max = 64u << 10;
    }
  } else if (has_800 && gpus <= 8) {
    tuning.channel_count = 24;
    tuning.chunk_bytes = tuning.tree_chunk_bytes_max = 256u << 10;
  } else if (has_800) {
    tuning.channel_count = 32;
    tuning.tree_chunk_bytes_max = gpus < 32 ? 128u << 10 : 64u << 10;
  } else if (has_400) {
    tuning.channel_count = 24;
    tuning.tree_chunk_bytes_max = is_near_nic ? 64u << 10 : 128u << 10;
  }
}

}  // namespace

NvlsTuning NvlsTuningOf(const CommunicatorLayout& layout, uint32_t gpus_per_node,
                        const NcclSettings& settings) {
  const bool is_blackwell = layout.generation >= GpuGeneration::kBlackwell;
  const bool one_node = layout.node_count() == 1;
  const bool has_fewer = one_node && settings.version >= kFirstFewerNvlsChannelsVersion;
  NvlsTuning tuning;
  tuning.channel_count = !is_blackwell ? kNvlsChannelsHopper
                         : has_fewer   ? kNvlsChannelsOneBlackwellNode
                                       : kNvlsChannelsBlackwell;
  if (is_blackwell && !one_node && settings.version >= kFirstNvlsTreeTuningVersion) {
    TuneTrees(layout, gpus_per_node, tuning);
  }
  if (settings.max_nchannels != 0) {
    tuning.channel_count = std::min(tuning.channel_count, settings.max_nchannels);
  }
  tuning.channel_count = std::max(tuning.channel_count, settings.min_nchannels);
  // A size that is set goes before one that is tuned.
  if (tuning.chunk_bytes == 0 || settings.nvls_chunksize_bytes != kDefaultNvlsChunkBytes) {
    tuning.chunk_bytes = settings.nvls_chunksize_bytes;
  }
  tuning.tree_chunk_bytes = settings.version < kFirstNvlsChunkSizeVersion
                                ? settings.buffsize_bytes / kSlots
                                : tuning.chunk_bytes;
  if (tuning.tree_chunk_bytes_max == 0) {
    const bool is_limited =
        layout.node_count() >= 4 && settings.version >= kFirstNvlsTreeLimitVersion;
    tuning.tree_chunk_bytes_max = is_limited ? 64u << 10 : tuning.tree_chunk_bytes;
  }
  tuning.tree_chunk_bytes_max =
      settings.nvlstree_max_chunksize_bytes.value_or(tuning.tree_chunk_bytes_max);
  return tuning;
}

}  // namespace railyard
