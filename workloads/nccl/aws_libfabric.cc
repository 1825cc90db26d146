// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/aws_libfabric.h"

namespace railyard {

namespace {

// NCCL 2.20 made what the plug-in's pull requests 332 and 372 set a variable (spring of 2024). The
// plug-in's 1.16 is of June 2025, and used beside NCCL 2.27 (awsome-distributed-training).
constexpr uint32_t kFirstWithNvlsChunks = 22000;
constexpr uint32_t kFirstWithBuffers = 22700;

}  // namespace

void ApplyAwsLibfabric(NcclSettings& settings) {
  if (settings.version >= kFirstWithNvlsChunks) {
    settings.nvls_chunksize_bytes = 512u << 10;
    settings.nvlstree_max_chunksize_bytes = 512u << 10;
  }
  if (settings.version >= kFirstWithBuffers) {
    settings.buffsize_bytes = 8u << 20;
    settings.p2p_net_chunksize_bytes = 512u << 10;
  }
}

uint32_t AwsLibfabricProtocols(GpuGeneration generation) {
  return generation >= GpuGeneration::kHopper ? UINT32_MAX
                                              : 1u << static_cast<uint32_t>(Protocol::kSimple);
}

double AwsLibfabricNetLatencyUs(GpuGeneration generation) {
  return generation >= GpuGeneration::kBlackwell ? 35.0 : 75.0;
}

double AwsLibfabricStepUs(Protocol protocol) { return protocol == Protocol::kSimple ? 23.0 : 20.0; }

}  // namespace railyard
