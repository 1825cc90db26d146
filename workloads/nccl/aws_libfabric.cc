// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/aws_libfabric.h"

namespace railyard {

namespace {

// NCCL 2.20 made the chunks of NVLSTree a variable, which the plug-in sets since February of 2024
// (pull request 332). The plug-in's 1.9 of April 2024 sets those of NVLS too (372), and is used
// beside NCCL 2.21 (awsome-distributed-ai issue 371). Its 1.16 is of June 2025, and used beside
// NCCL 2.27 (awsome-distributed-training).
constexpr uint32_t kFirstWithNvlsTreeChunks = 22000;
constexpr uint32_t kFirstWithNvlsChunks = 22100;
constexpr uint32_t kFirstWithBuffers = 22700;

// The plug-in's 1.7.4 divides messages of more than 256 KiB instead of 8 KiB (pull request 295),
// and is used beside NCCL 2.19 (aws-parallelcluster pull request 5959). From 1.13 on, of autumn
// 2024, stripes have 128 KiB (pull requests 604, 669); NCCL 2.24 is the next version.
constexpr uint32_t kFirstWithLargeThreshold = 21900;
constexpr uint32_t kFirstWithStripes = 22400;

}  // namespace

void ApplyAwsLibfabric(NcclSettings& settings) {
  if (settings.version >= kFirstWithNvlsTreeChunks) {
    settings.nvlstree_max_chunksize_bytes = 512u << 10;
  }
  if (settings.version >= kFirstWithNvlsChunks) settings.nvls_chunksize_bytes = 512u << 10;
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

// Both are the client's figures for 256 bytes, the first size that opens no connection (p5:
// modal-labs/multinode-training-guide, health-checks/README.md, two nodes of 8 H100; p4de:
// awsankur/awesome-networking, README.md).
double EfaLatencyUs(GpuGeneration generation) {
  return generation >= GpuGeneration::kHopper ? 17.3 : 19.8;
}

// "~2 usec cost in the device and ~1 usec cost to write that completion up to the host stack"
// (include/nccl_ofi_param.h on TUNER_NET_COMP_OVERHEAD).
double EfaCompletionUs() { return 1.0; }

AwsLibfabricStripes AwsLibfabricStripesOf(uint32_t nccl_version) {
  if (nccl_version >= kFirstWithStripes) return {.bytes = 128u << 10};
  const uint64_t bytes = nccl_version >= kFirstWithLargeThreshold ? 256u << 10 : 8u << 10;
  return {.bytes = bytes, .are_on_all_rails = true};
}

}  // namespace railyard
