// SPDX-License-Identifier: GPL-2.0-only
// Compares constants of the kernels of experts with their public code and tables.
#include "workloads/experts/expert_kernels.h"

#include <gtest/gtest.h>

#include "simulator/execution/lanes/expert_costs.h"

namespace railyard {
namespace {

// Hidden 7168, top-8: FP8 values, 56 scales, SourceMeta, eight indices and eight weights, aligned
// to 16; BF16 values, SourceMeta and weights. Low latency: 7168 + 224 + 16, and 14336 alone.
TEST(ExpertKernelsTest, TokensHaveTheirScalesAndMetadata) {
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, false, 7168, 1, 8), 7472u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, false, 7168, 2, 8), 14416u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEp, true, 7168, 2, 8), 14384u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEpLowLatency, false, 7168, 1, 8), 7408u);
  EXPECT_EQ(TokenBytes(ExpertKernel::kDeepEpLowLatency, true, 7168, 2, 8), 14336u);
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
  EXPECT_NEAR(16 * gb_per_s(ExpertKernel::kHybridEp, false, 7392), 599.27, 0.1);
  EXPECT_NEAR(16 * gb_per_s(ExpertKernel::kHybridEp, true, 14336), 673.84, 0.1);
  EXPECT_EQ(gb_per_s(ExpertKernel::kDeepEpLowLatency, true, 14336), 0);  // no limit
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
