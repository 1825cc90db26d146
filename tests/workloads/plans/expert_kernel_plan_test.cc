// SPDX-License-Identifier: GPL-2.0-only
// Compares the hops of kernels of experts in plans with closed forms.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kRanks = 16;
constexpr uint32_t kTokens = 48;

std::string PlanText(const std::string& kernel, uint32_t per_token) {
  return fmt::format(
      "model {{ layers: 1 hidden: 256 heads: 8 vocabulary: 1024\n"
      "  experts {{ count: 32 per_token: {} feed_forward: 128 kernel: {} }} }}\n"
      "parallelism {{ data: {} expert: {} }}\n"
      "compute {{ accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }}\n"
      "training {{ sequence: {} micro_batch: 1 micro_batches: 1 }}\n"
      "expert_routing {{ dispatch_precision: FP8 }}\n",
      per_token, kernel, kRanks, kRanks, kTokens);
}

Trace TraceOf(const std::string& kernel, uint32_t per_token) {
  const LoadedPlan loaded(PlanText(kernel, per_token));
  EXPECT_EQ(loaded.findings, "");
  Trace trace = Synthesize(loaded.plan.value());
  Diagnostics diagnostics;
  EXPECT_TRUE(CheckTrace(trace, "", diagnostics)) << diagnostics.ToString();
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value()) << diagnostics.ToString();
  return trace;
}

// Tokens that go from rank to rank in the first dispatch and the first combine.
using Hops = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
Hops HopsOf(const Trace& trace, bool combines) {
  Hops hops;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    for (const TraceOperation& call : trace.operations[rank]) {
      if (call.kind != CollectiveKind::kSend || call.all_to_all != (combines ? 2 : 1)) continue;
      EXPECT_EQ(call.expert.combines, combines);
      EXPECT_EQ(call.count % call.expert.token_bytes, 0u);
      if (call.peer != rank) hops[{rank, call.peer}] += call.count / call.expert.token_bytes;
    }
  }
  return hops;
}

// Tokens for all experts go once to the other server, on their own place, and from there to its
// seven others; within a server a rank passes on its own tokens and those of the rank on its place.
TEST(ExpertKernelPlanTest, TokensForAllExpertsAreCopiedOncePerServer) {
  for (const char* const kernel : {"DEEPEP", "HYBRID_EP"}) {
    const Trace trace = TraceOf(kernel, 32);
    for (const bool combines : {false, true}) {
      const Hops hops = HopsOf(trace, combines);
      EXPECT_EQ(hops.size(), 16u * (1 + 7));
      for (const auto& [pair, tokens] : hops) {
        const auto& [from, to] = pair;
        if (from / 8 == to / 8) {
          EXPECT_EQ(tokens, 2 * kTokens);
        } else {
          EXPECT_EQ(from % 8, to % 8);
          EXPECT_EQ(tokens, kTokens);
        }
      }
    }
  }
}

// Each of a rank's tokens goes to each of the two experts of every rank.
TEST(ExpertKernelPlanTest, LowLatencySendsATokenForEachExpert) {
  const Trace trace = TraceOf("DEEPEP_LOW_LATENCY", 32);
  const Hops hops = HopsOf(trace, false);
  EXPECT_EQ(hops.size(), 16u * 15);
  for (const auto& entry : hops) EXPECT_EQ(entry.second, 2 * kTokens);
  // A queue pair for each of a rank's experts; 256 + 2 scales + a header of 16 bytes.
  const TraceOperation* call = nullptr;
  for (const TraceOperation& operation : trace.operations[GlobalRank{0}]) {
    if (operation.all_to_all == 1 && call == nullptr) call = &operation;
  }
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->expert.channels, 2u);
  EXPECT_EQ(call->expert.token_bytes, 256u + 2 * 4 + 16 + 8);  // aligned to 16
}

// With few experts a token, each hop carries what the counts of the others imply: what a rank gets
// for a token's experts is sent once per rank, and no more than once per server between servers.
TEST(ExpertKernelPlanTest, HopsFollowTheSameDrawsAsNccls) {
  const Hops pairs = HopsOf(TraceOf("DEEPEP_LOW_LATENCY", 2), false);  // per token and expert
  const Hops hops = HopsOf(TraceOf("DEEPEP", 2), false);
  uint64_t direct = 0;
  for (const auto& [pair, tokens] : pairs) direct += pair.first / 8 != pair.second / 8 ? tokens : 0;
  uint64_t copies = 0;
  for (const auto& [pair, tokens] : hops) copies += pair.first / 8 != pair.second / 8 ? tokens : 0;
  EXPECT_LT(copies, direct);  // some tokens have two experts there
  EXPECT_GE(2 * copies, direct);
  // Combine returns exactly what dispatch brought.
  const Hops back = HopsOf(TraceOf("DEEPEP", 2), true);
  for (const auto& [pair, tokens] : hops) EXPECT_EQ(back.at({pair.second, pair.first}), tokens);
}

std::string FindingsOf(const std::string& kernel, const std::vector<std::string>& sets) {
  return LoadedPlan(PlanText(kernel, 4), sets).findings;
}

TEST(ExpertKernelPlanTest, WhatAKernelCannotDoIsAnError) {
  EXPECT_THAT(FindingsOf("DEEPEP", {"parallelism.data=32", "parallelism.expert=4"}), "");
  EXPECT_THAT(FindingsOf("DEEPEP", {"model.experts.count=96", "parallelism.data=96",
                                    "parallelism.expert=48"}),
              HasSubstr("error: model.experts.kernel: DEEPEP has no configuration for 48 ranks "
                        "(expected parallelism.expert: 2, 4, 8, 16, 24, 32, 64, 128, 144, 160)"));
  EXPECT_THAT(FindingsOf("HYBRID_EP", {"model.experts.nvlink_ranks=6"}),
              HasSubstr("16 ranks are no whole servers of 6"));
  EXPECT_THAT(FindingsOf("HYBRID_EP", {"model.experts.kernel_sms=200"}),
              HasSubstr("200 SMs and 2 servers are too many"));
  EXPECT_THAT(FindingsOf("DEEPEP", {"model.experts.kernel_sms=7"}), HasSubstr("7 is odd"));
  EXPECT_THAT(FindingsOf("DEEPEP_LOW_LATENCY", {"model.experts.kernel_sms=8"}),
              HasSubstr("kernel_sms: means nothing here (expected kernel: DEEPEP or HYBRID_EP)"));
  EXPECT_THAT(FindingsOf("DEEPEP", {"model.experts.nvlink_ranks=4"}),
              HasSubstr("nvlink_ranks: means nothing here (expected kernel: HYBRID_EP)"));
  EXPECT_THAT(FindingsOf("DEEPEP", {"expert_routing.capacity_factor=1"}),
              HasSubstr("capacity_factor: DEEPEP does no such thing"));
  // Two of a token's experts may be one rank's.
  EXPECT_EQ(FindingsOf("DEEPEP", {"training.sequence=524289"}), "");
  EXPECT_THAT(FindingsOf("DEEPEP_LOW_LATENCY", {"training.sequence=524289"}),
              HasSubstr("DEEPEP_LOW_LATENCY exchanges 1048578 tokens at once (expected at most "
                        "1048576)"));
  const std::string text = PlanText("DEEPEP", 4);
  EXPECT_THAT(
      LoadedPlan(text.substr(0, text.find("expert_routing")), {"parallelism.expert=1"}).findings,
      HasSubstr("DEEPEP moves tokens to whole experts"));
}

}  // namespace
}  // namespace railyard
