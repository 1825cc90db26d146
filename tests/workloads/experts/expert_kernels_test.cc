// SPDX-License-Identifier: GPL-2.0-only
// Compares constants of the kernels of experts with their public code and tables.
#include "workloads/experts/expert_kernels.h"

#include <gtest/gtest.h>

#include "simulator/execution/lanes/expert_costs.h"

namespace railyard {
namespace {

TokenShape Token(uint32_t element_bytes) {
  return {.hidden = 7168, .element_bytes = element_bytes, .per_token = 8, .server_experts = 64};
}

// Hidden 7168, top-8: FP8 values, 56 scales, SourceMeta, eight indices and eight weights, aligned
// to 16; BF16 values, SourceMeta and weights. Low latency: 7168 + 224 + 16, and 14336 alone.
// hybrid-ep: 7168 + 224 and a weight of each of the server's 64 experts, and 14336 alone.
TEST(ExpertKernelsTest, TokensHaveTheirScalesAndMetadata) {
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, false, Token(1)), 7472u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, false, Token(2)), 14416u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, true, Token(2)), 14384u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEpLowLatency, false, Token(1)), 7408u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEpLowLatency, true, Token(2)), 14336u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kHybridEp, false, Token(1)), 7648u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kHybridEp, true, Token(2)), 14336u);
}

// Config(20, 16, 288, 20, 128) and Config(20, 1, 288, 20, 128) of deep_ep/buffer.py.
TEST(ExpertKernelsTest, ChunksAreDeepEpsConfigurations) {
  const TokenChunks dispatch = ChunksOf(ExpertKernel::kDeepEp, false, 16);
  EXPECT_EQ(dispatch.nvlink_tokens, 16u);
  EXPECT_EQ(dispatch.nvlink_in_flight, 8u);  // of 288 / 16
  EXPECT_EQ(dispatch.network_tokens, 20u);
  EXPECT_EQ(dispatch.network_in_flight, 6u);  // 128 / 20
  EXPECT_EQ(ChunksOf(ExpertKernel::kDeepEp, true, 64).nvlink_tokens, 1u);
  EXPECT_EQ(ChunksOf(ExpertKernel::kHybridEp, true, 64).network_tokens, 64u);
  EXPECT_EQ(DeepEpRanks().back(), 160u);
}

// 8 B200 with 16 SMs receive 246 GB/s of FP8 and 348 of BF16 in DeepEP's dispatch, and 302 in its
// combine; without metadata, as its test counts.
TEST(ExpertKernelsTest, ChannelsAreAsFastAsOnB200) {
  const auto gb_per_s = [](ExpertKernel kernel, bool combines, uint32_t token_bytes) {
    const StepCosts costs =
        ExpertCosts({}, {.ranks = std::vector<RankPlace>(8)},
                    {.token_bytes = token_bytes, .kernel = kernel, .combines = combines});
    return static_cast<double>(costs.channel_rate_bps) / 8e9;
  };
  EXPECT_NEAR(8 * gb_per_s(ExpertKernel::kDeepEp, false, 7392), 246, 0.1);
  EXPECT_NEAR(8 * gb_per_s(ExpertKernel::kDeepEp, false, 14336), 348, 0.1);
  EXPECT_NEAR(8 * gb_per_s(ExpertKernel::kDeepEp, true, 14336), 302, 0.1);
  EXPECT_NEAR(16 * gb_per_s(ExpertKernel::kHybridEp, false, 7648) * 7392 / 7648, 599.27, 0.1);
  EXPECT_NEAR(16 * gb_per_s(ExpertKernel::kHybridEp, true, 14336), 673.84, 0.1);
  EXPECT_EQ(gb_per_s(ExpertKernel::kDeepEpLowLatency, true, 14336), 0);  // no limit
}

// In the table above a token is copied to 8 (1 - C(56, 8) / C(64, 8)) = 5.43 GPUs. With hybrid-ep
// the time per token is taken once for all of them, with DeepEP for each. Hybrid-ep: 71.0 ns a copy
// and 7648 B at 60.5 GB/s.
TEST(ExpertKernelsTest, HybridEpLoadsATokenOnce) {
  const TokenTime hybrid =
      TokenTimeOf({.token_bytes = 7648, .kernel = ExpertKernel::kHybridEp, .combines = false});
  EXPECT_NEAR(hybrid.usual_ns, hybrid.once_ns / 5.4326 + hybrid.copy_ns, 0.01);
  EXPECT_NEAR(hybrid.once_ns, 5.4326 * 71.0, 1);
  EXPECT_NEAR(hybrid.copy_ns, 7648 / 60.5, 0.2);
  const TokenTime deep_ep =
      TokenTimeOf({.token_bytes = 7472, .kernel = ExpertKernel::kDeepEp, .combines = false});
  EXPECT_EQ(deep_ep.once_ns, 0);
  EXPECT_EQ(deep_ep.copy_ns, deep_ep.usual_ns);
}

// 28 tokens of 64 ranks' chunk, two experts of each on a server of eight; at least one.
TEST(ExpertKernelsTest, RelaysPassOnWhatHasArrived) {
  EXPECT_EQ(ForwardedTokens(28, 8), 7u);
  EXPECT_EQ(ForwardedTokens(20, 8), 5u);
  EXPECT_EQ(ForwardedTokens(6, 72), 1u);
}

// A kernel before DeepEP's normal ones exchanges the numbers of tokens. GPUs post by themselves.
TEST(ExpertKernelsTest, NormalKernelsAreLaunchedTwice) {
  const CommunicatorLayout layout{.ranks = std::vector<RankPlace>(8)};
  const auto costs = [&](ExpertKernel kernel) {
    return ExpertCosts({}, layout, {.token_bytes = 7472, .kernel = kernel, .combines = false});
  };
  EXPECT_EQ(costs(ExpertKernel::kDeepEp).launch_latency_ps, 16'800'000);
  EXPECT_EQ(costs(ExpertKernel::kHybridEp).launch_latency_ps, 8'400'000);
  EXPECT_TRUE(costs(ExpertKernel::kDeepEpLowLatency).gpu_posts);
  // A scenario's statement replaces it.
  GpuCosts stated;
  stated.launch_latency_ps = 5;
  stated.network_step_latency_ps = 7;
  const StepCosts replaced =
      ExpertCosts(stated, layout, {.token_bytes = 7472, .kernel = ExpertKernel::kDeepEp});
  EXPECT_EQ(replaced.launch_latency_ps, 5);
  EXPECT_EQ(replaced.network_step_latency_ps, 7);
}

}  // namespace
}  // namespace railyard
