// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/experts/expert_kernels.h"

#include <algorithm>
#include <array>

#include "simulator/units/divide_up.h"

namespace railyard {
namespace {

// Config(num_sms, chunk and buffer of NVLink, chunk and buffer of RDMA), in tokens
// (Buffer.get_dispatch_config and get_combine_config, deep_ep/buffer.py).
struct Buffers {
  uint32_t nvlink_chunk;
  uint32_t nvlink_buffer;
  uint32_t network_chunk;
  uint32_t network_buffer;
};
constexpr std::array<uint32_t, 10> kRanks = {2, 4, 8, 16, 24, 32, 64, 128, 144, 160};
constexpr std::array<Buffers, kRanks.size()> kDispatch = {{{24, 256, 6, 128},
                                                           {6, 256, 6, 128},
                                                           {6, 256, 6, 128},
                                                           {16, 288, 20, 128},
                                                           {8, 288, 32, 128},
                                                           {8, 288, 32, 128},
                                                           {20, 288, 28, 128},
                                                           {20, 560, 32, 128},
                                                           {32, 720, 12, 128},
                                                           {28, 720, 12, 128}}};
constexpr std::array<Buffers, kRanks.size()> kCombine = {{{10, 256, 6, 128},
                                                          {9, 256, 6, 128},
                                                          {4, 256, 6, 128},
                                                          {2, 288, 28, 128},
                                                          {1, 288, 20, 128},
                                                          {1, 288, 20, 128},
                                                          {1, 288, 20, 128},
                                                          {1, 560, 12, 128},
                                                          {2, 720, 8, 128},
                                                          {2, 720, 8, 128}}};

constexpr uint32_t kMessagesMax = 8;  // that a connection of the simulator holds

// NUM_OF_TOKENS_PER_CHUNK_DISPATCH_API and _COMBINE_API by default. Its copies over NVLink go token
// by token; eight of them are one message here.
constexpr TokenChunks kHybridChunks = {
    .nvlink_tokens = 8, .nvlink_in_flight = 8, .network_tokens = 64, .network_in_flight = 8};

constexpr uint32_t kScaleBytes = 4;  // float
constexpr uint32_t kValuesOfScale = 128;
constexpr uint32_t kSourceMetaBytes = 8;  // struct SourceMeta (csrc/kernels/internode.cu)
constexpr uint32_t kWeightBytes = 4;      // float
constexpr uint32_t kIndexBytes = 4;       // int
constexpr uint32_t kLowLatencyHeaderBytes = 16;
constexpr uint32_t kAlignment = 16;  // int4

}  // namespace

TokenChunks ChunksOf(ExpertKernel kernel, bool combines, uint32_t ranks) {
  if (kernel == ExpertKernel::kHybridEp) return kHybridChunks;
  if (kernel == ExpertKernel::kDeepEpLowLatency) return {};
  const auto row = std::min<std::ptrdiff_t>(
      std::ranges::lower_bound(kRanks, ranks) - kRanks.begin(), kRanks.size() - 1);
  const Buffers& buffers = (combines ? kCombine : kDispatch)[static_cast<size_t>(row)];
  return {
      .nvlink_tokens = buffers.nvlink_chunk,
      .nvlink_in_flight = std::min(kMessagesMax, buffers.nvlink_buffer / buffers.nvlink_chunk),
      .network_tokens = buffers.network_chunk,
      .network_in_flight = std::min(kMessagesMax, buffers.network_buffer / buffers.network_chunk)};
}

std::span<const uint32_t> DeepEpRanks() { return kRanks; }

uint32_t TokenBytes(ExpertKernel kernel, bool combines, uint32_t hidden, uint32_t element_bytes,
                    uint32_t per_token) {
  const uint32_t scales =
      element_bytes == 1 ? static_cast<uint32_t>(DivideUp(hidden, kValuesOfScale)) * kScaleBytes
                         : 0;
  uint32_t bytes = hidden * element_bytes + scales;
  if (kernel == ExpertKernel::kDeepEpLowLatency) {
    if (!combines) bytes += kLowLatencyHeaderBytes;
  } else {
    bytes += kSourceMetaBytes + per_token * (combines ? kWeightBytes : kWeightBytes + kIndexBytes);
  }
  return static_cast<uint32_t>(DivideUp(bytes, kAlignment)) * kAlignment;
}

ConnectionUse ConnectionUseOf(const ExpertCall& call) {
  if (call.kernel == ExpertKernel::kNone) return ConnectionUse::kPointToPoint;
  return call.relayed_for > 0 ? ConnectionUse::kExchange : ConnectionUse::kRemoteWrite;
}

}  // namespace railyard
