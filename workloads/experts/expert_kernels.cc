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

// This is what 8 B200 of one board receive with 16 SMs, in FP8 and BF16
// (Hybrid-EP_Implementation.md of DeepEP's branch hybrid-ep, commit 07eea0c, "B200 Platform"; GB/s
// of 7,392 and 14,336 bytes a token, the rank's own included), DeepEP by 8 channels of two SMs
// each, hybrid-ep (kernel time) by 16. From the two sizes follow a time per token and a time per
// byte. SMs of Hopper are assumed to be as fast.
struct MeasuredRates {
  double channels = 0;
  double dispatch_metadata_bytes = 0;  // that hybrid-ep moves besides: the weights of 64 experts
  double fp8_dispatch_gb_per_s = 0;
  double bf16_dispatch_gb_per_s = 0;
  double bf16_combine_gb_per_s = 0;
};
constexpr MeasuredRates kDeepEpRates = {.channels = 8,
                                        .fp8_dispatch_gb_per_s = 246,
                                        .bf16_dispatch_gb_per_s = 348,
                                        .bf16_combine_gb_per_s = 302};
constexpr MeasuredRates kHybridEpRates = {.channels = 16,
                                          .dispatch_metadata_bytes = 64 * kWeightBytes,
                                          .fp8_dispatch_gb_per_s = 599.27,
                                          .bf16_dispatch_gb_per_s = 734.95,
                                          .bf16_combine_gb_per_s = 673.84};
constexpr double kFp8TokenBytes = 7168 + 7168 / 128.0 * 4;
constexpr double kBf16TokenBytes = 2 * 7168;
struct ChannelTime {
  double token_ns = 0;
  double dispatch_ns_per_byte = 0;
  double combine_ns_per_byte = 0;
};
constexpr ChannelTime ChannelTimeOf(const MeasuredRates& rates) {
  const double fp8_ns = rates.channels * kFp8TokenBytes / rates.fp8_dispatch_gb_per_s;
  const double bf16_ns = rates.channels * kBf16TokenBytes / rates.bf16_dispatch_gb_per_s;
  const double combine_ns = rates.channels * kBf16TokenBytes / rates.bf16_combine_gb_per_s;
  const double ns_per_byte = (bf16_ns - fp8_ns) / (kBf16TokenBytes - kFp8TokenBytes);
  const double token_ns = fp8_ns - ns_per_byte * (kFp8TokenBytes + rates.dispatch_metadata_bytes);
  return {token_ns, ns_per_byte, (combine_ns - token_ns) / kBf16TokenBytes};
}
constexpr ChannelTime kDeepEpTime = ChannelTimeOf(kDeepEpRates);
constexpr ChannelTime kHybridEpTime = ChannelTimeOf(kHybridEpRates);

// Copies of a token in that table, on ranks with one of its 8 different experts of 64, 8 on a rank.
constexpr double CopiesOfToken() {
  double misses = 1;  // probability that no expert is on a given rank
  for (int chosen = 0; chosen < 8; ++chosen) misses *= (56.0 - chosen) / (64.0 - chosen);
  return 8 * (1 - misses);
}

}  // namespace

// A warp of DeepEP's has one destination and loads each token for it alone. hybrid-ep has one
// thread that loads a token into shared memory, and others that store it to all destinations; each
// waits once for a token (intra_node_G2S and S2G_warp_group_device_function,
// hybrid_ep_backend.cuh).
TokenTime TokenTimeOf(const ExpertCall& call) {
  const bool is_hybrid = call.kernel == ExpertKernel::kHybridEp;
  const ChannelTime& time = is_hybrid ? kHybridEpTime : kDeepEpTime;
  const double bytes_ns =
      call.token_bytes * (call.combines ? time.combine_ns_per_byte : time.dispatch_ns_per_byte);
  const double usual_ns = time.token_ns + bytes_ns;
  if (!is_hybrid) return {.once_ns = 0, .copy_ns = usual_ns, .usual_ns = usual_ns};
  return {.once_ns = time.token_ns * CopiesOfToken(), .copy_ns = bytes_ns, .usual_ns = usual_ns};
}

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

// A forwarder's warp ends its message where no token has arrived, or at its chunk
// (kRDMAAndNVLForwarder, csrc/kernels/internode.cu).
uint32_t ForwardedTokens(uint32_t network_tokens, uint32_t server_ranks) {
  constexpr uint32_t kExpertsOnServer = 2;
  return static_cast<uint32_t>(DivideUp(uint64_t{kExpertsOnServer} * network_tokens, server_ranks));
}

std::span<const uint32_t> DeepEpRanks() { return kRanks; }

uint32_t TokenBytes(ExpertKernel kernel, bool combines, const TokenShape& token) {
  const uint32_t scales =
      token.element_bytes == 1
          ? static_cast<uint32_t>(DivideUp(token.hidden, kValuesOfScale)) * kScaleBytes
          : 0;
  uint32_t bytes = token.hidden * token.element_bytes + scales;
  switch (kernel) {
    case ExpertKernel::kDeepEpLowLatency:
      if (!combines) bytes += kLowLatencyHeaderBytes;
      break;
    case ExpertKernel::kHybridEp:  // FORWARD_DISPATCH, BACKWARD_COMBINE: weights go with the tokens
      if (!combines) bytes += token.server_experts * kWeightBytes;
      break;
    default:
      bytes += kSourceMetaBytes +
               token.per_token * (combines ? kWeightBytes : kWeightBytes + kIndexBytes);
  }
  return static_cast<uint32_t>(DivideUp(bytes, kAlignment)) * kAlignment;
}

ConnectionUse ConnectionUseOf(const ExpertCall& call) {
  if (call.kernel == ExpertKernel::kNone) return ConnectionUse::kPointToPoint;
  return call.relayed_for > 0 ? ConnectionUse::kExchange : ConnectionUse::kRemoteWrite;
}

}  // namespace railyard
