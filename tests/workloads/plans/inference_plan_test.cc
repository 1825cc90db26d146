// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference/inference_plan.h"

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/support/reference_dir.h"
#include "tests/workloads/plans/loaded_plan.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

Trace SynthesizeText(const std::string& text, const std::vector<std::string>& sets = {}) {
  const LoadedPlan loaded(text, sets);
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan ? Synthesize(*loaded.plan) : Trace{};
}

constexpr const char* kLlama =
    "model { preset: \"llama-2-70b\" }\n"
    "parallelism { tensor: 8 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "inference { queries: 4 batch: 2 prompt_tokens: 100 output_tokens: 3 }\n";

// 80 layers: 1 + 2 x 80 AllReduces and an AllGather per step; 2 batches of 3 steps.
TEST(InferencePlanTest, EveryStepHasItsCollectivesInTheModelsSizes) {
  const Trace trace = SynthesizeText(kLlama);
  ASSERT_EQ(trace.rank_count, 8u);
  const std::vector<TraceOperation>& operations = trace.operations[GlobalRank{0}];
  ASSERT_EQ(operations.size(), 2u * 3 * 162);
  for (size_t i = 0; i < operations.size(); ++i) {
    const size_t in_step = i % 162;
    const bool is_prefill = i / 162 % 3 == 0;
    EXPECT_EQ(operations[i].datatype, Datatype::kBfloat16);
    if (in_step == 161) {
      EXPECT_EQ(operations[i].kind, CollectiveKind::kAllGather);
      EXPECT_EQ(operations[i].count, 2u * 32000 / 8);
    } else {
      EXPECT_EQ(operations[i].kind, CollectiveKind::kAllReduce);
      EXPECT_EQ(operations[i].count, (is_prefill ? 2u * 100 : 2u) * 8192);
    }
  }
}

TEST(InferencePlanTest, AllRanksShareOneProgramAndFitTogether) {
  const Trace trace = SynthesizeText(kLlama);
  for (GlobalRank rank{1}; rank < trace.rank_count; ++rank) {
    EXPECT_EQ(trace.operations.program_of_rank(rank),
              trace.operations.program_of_rank(GlobalRank{0}));
  }
  Diagnostics diagnostics;
  EXPECT_TRUE(CheckTrace(trace, "plan", diagnostics));
  const auto job = BuildJob(trace, diagnostics);
  EXPECT_EQ(diagnostics.ToString(), "");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->collectives.size(), 2u * 3 * 162);
}

// A decoding step's attention is bound by memory: bytes over half of 3,350 GB/s. Each GPU reads an
// eighth of 8192 x 18432 elements, the norm of 8192, and 2 x 102 tokens' keys and values of one
// head (the third token's prompt of 100, one token before it, and itself).
TEST(InferencePlanTest, ComputeTimesFollowTheRoofline) {
  const Trace trace = SynthesizeText(kLlama);
  const TraceOperation& attention = trace.operations[GlobalRank{0}][2 * 162 + 1];
  const double bytes = 2.0 * (8192.0 * 18432 / 8 + 8192) + 2.0 * 2 * 102 * 2 * 128;
  EXPECT_EQ(attention.compute_before_ps, std::llround(bytes / (0.5 * 3350e9) * 1e12));
  // The prefill's feed-forward network by operations: 2,000 tokens at half of 989.5 TFLOP/s.
  const Trace long_prompts = SynthesizeText(kLlama, {"inference.prompt_tokens=1000"});
  const TraceOperation& feed_forward = long_prompts.operations[GlobalRank{0}][2];
  const double flops = 2.0 * 2000 * 3 * 8192 * 28672 / 8;
  EXPECT_EQ(feed_forward.compute_before_ps, std::llround(flops / (0.5 * 989.5e12) * 1e12));
}

TEST(InferencePlanTest, GivenTimesAreTakenAsTheyAre) {
  const Trace trace = SynthesizeText(
      kLlama, {"compute={ given { attention: \"10us\" feed_forward: \"20us\" embedding: \"1us\" "
               "output_layer: \"5us\" } }"});
  const std::vector<TraceOperation>& operations = trace.operations[GlobalRank{0}];
  EXPECT_EQ(operations[0].compute_before_ps, 1 * kPsPerUs);
  EXPECT_EQ(operations[1].compute_before_ps, 10 * kPsPerUs);
  EXPECT_EQ(operations[2].compute_before_ps, 20 * kPsPerUs);
  EXPECT_EQ(operations[161].compute_before_ps, 5 * kPsPerUs);
}

// DeepSeek-V3's own program on 16 GPUs: per forward pass 1 + 3 x 2 + 58 x 3 AllReduces of 7168
// elements per token and one AllGather of 129280 / 16; Gupta et al. (arXiv 2507.07117) count over
// 600,000 of the first and about 3,000 of the second for 8 queries.
TEST(InferencePlanTest, DeepSeekV3MakesTheStudysCollectives) {
  Diagnostics diagnostics;
  const auto plan = LoadPlanFile(
      std::string(RAILYARD_SOURCE_DIR) + "/workloads/examples/deepseek_v3_inference.textproto", {},
      diagnostics);
  ASSERT_TRUE(plan.has_value()) << diagnostics.ToString();
  const Trace trace = Synthesize(*plan);
  EXPECT_EQ(trace.rank_count, 16u);
  std::map<std::pair<CollectiveKind, uint64_t>, uint64_t> counts;
  for (const TraceOperation& operation : trace.operations[GlobalRank{0}]) {
    ++counts[{operation.kind, operation.count}];
  }
  const std::map<std::pair<CollectiveKind, uint64_t>, uint64_t> expected = {
      {{CollectiveKind::kAllReduce, 512 * 7168}, 8UL * 181},
      {{CollectiveKind::kAllReduce, 7168}, 8UL * 415 * 181},
      {{CollectiveKind::kAllGather, 129280 / 16}, 8UL * 416}};
  EXPECT_EQ(counts, expected);
  EXPECT_GE(8u * 416 * 181, 600'000u);
}

// The study of the test above reports for fine-tuning that AllReduces are most frequent there, too,
// and larger. Model and GPUs are the same; a forward and a backward pass each reduce a sequence of
// 7168 elements a token.
TEST(InferencePlanTest, FineTuningMovesLargerMessages) {
  const std::string places = "model { preset: \"deepseek-v3\" }\nparallelism { tensor: 16 }\n";
  const std::string times =
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.6 }\n";
  const auto mean_bytes = [](const Trace& trace) {
    uint64_t reductions = 0;
    uint64_t bytes = 0;
    uint64_t others = 0;
    for (const TraceOperation& operation : trace.operations[GlobalRank{0}]) {
      if (operation.kind != CollectiveKind::kAllReduce) {
        ++others;
        continue;
      }
      ++reductions;
      bytes += operation.count * DatatypeBytes(operation.datatype);
    }
    EXPECT_GT(reductions, others);
    return static_cast<double>(bytes) / static_cast<double>(reductions);
  };
  const Trace inference = SynthesizeText(
      places + times + "inference { queries: 1 prompt_tokens: 512 output_tokens: 64 }\n");
  const Trace tuning = SynthesizeText(
      places + times + "training { sequence: 512 micro_batch: 1 micro_batches: 1 }\n");
  // 63 of the 64 passes are of one token.
  EXPECT_NEAR(mean_bytes(inference), (512 + 63) / 64.0 * 7168 * 2, 1);
  EXPECT_GT(mean_bytes(tuning), 10 * mean_bytes(inference));
}

TEST(InferencePlanTest, EveryPartTakesItsOverheadBeside) {
  const std::string text =
      "model { preset: \"deepseek-v3\" }\n"
      "parallelism { tensor: 16 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
      "inference { queries: 1 prompt_tokens: 4 output_tokens: 2 }\n";
  const Trace without = SynthesizeText(text);
  const Trace with = SynthesizeText(text, {"compute.part_overhead=38us"});
  ASSERT_EQ(with.operations[GlobalRank{0}].size(), without.operations[GlobalRank{0}].size());
  for (size_t i = 0; i < with.operations[GlobalRank{0}].size(); ++i) {
    EXPECT_EQ(with.operations[GlobalRank{0}][i].compute_before_ps,
              without.operations[GlobalRank{0}][i].compute_before_ps + 38'000'000);
  }
}

TEST(InferencePlanTest, SharedExpertsAreReducedWithTheOthersUnlessStated) {
  const char* const text =
      "model { preset: \"deepseek-v3\" }\n"
      "parallelism { tensor: 16 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
      "inference { queries: 1 prompt_tokens: 4 output_tokens: 1 }\n";
  EXPECT_EQ(SynthesizeText(text).operations[GlobalRank{0}].size(), 1u + 2 * 61 + 1);
  EXPECT_EQ(SynthesizeText(text, {"inference.shared_reduction=SEPARATE"})
                .operations[GlobalRank{0}]
                .size(),
            1u + 2 * 61 + 58 + 1);
}

}  // namespace
}  // namespace railyard
