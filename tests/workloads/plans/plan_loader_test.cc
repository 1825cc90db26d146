// SPDX-License-Identifier: GPL-2.0-only
// Plans that cannot be, each with the line that says so.
#include "workloads/plans/synthesis/plan_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPlan =
    "model { preset: \"llama-2-70b\" }\n"
    "parallelism { tensor: 8 }\n"
    "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "inference { queries: 8 batch: 4 prompt_tokens: 100 output_tokens: 3 }\n";

// The findings of a right plan with these edits, their place cut off.
std::string Findings(const std::vector<std::string>& sets) {
  std::string findings = LoadedPlan(kPlan, sets).findings;
  for (const std::string& set : sets) {
    const std::string place = "--set " + set + ": ";
    for (size_t at = 0; (at = findings.find(place)) != std::string::npos;) {
      findings.erase(at, place.size());
    }
  }
  return findings;
}

TEST(PlanLoaderTest, ARightPlanIsWhatItSays) {
  const LoadedPlan loaded(kPlan);
  EXPECT_EQ(loaded.findings, "");
  ASSERT_TRUE(loaded.plan.has_value());
  EXPECT_EQ(loaded.plan->model.layers, 80u);
  EXPECT_EQ(loaded.plan->parallelism.RankCount(), 8u);
}

TEST(PlanLoaderTest, WhatIsMissingIsNamedAllAtOnce) {
  EXPECT_EQ(LoadedPlan("name: \"empty\"\n").findings,
            ":1:1: error: model: missing (expected e.g. model { preset: \"llama-2-70b\" })\n"
            ":1:1: error: parallelism: missing (expected e.g. parallelism { tensor: 8 data: 4 })\n"
            ":1:1: error: compute: missing (expected e.g. compute { accelerator: \"h100-sxm\" "
            "utilisation: 0.4 memory_utilisation: 0.8 })\n"
            ":1:1: error: training: missing (expected training or inference)\n");
}

TEST(PlanLoaderTest, FindingsStandWhereTheyWereWritten) {
  EXPECT_EQ(LoadedPlan("model { preset: \"llama-3-80b\" }\n"
                       "parallelism { tensor: 0 }\n"
                       "compute { accelerator: \"h100\" utilisation: 2 memory_utilisation: 1 }\n"
                       "inference { queries: 8 prompt_tokens: 100 output_tokens: 3 }\n")
                .findings,
            ":1:9: error: model.preset: unknown model \"llama-3-80b\" (did you mean "
            "\"llama-3-8b\"?)\n"
            ":2:15: error: parallelism.tensor: 0 is out of range (expected 1 to 65536)\n"
            ":3:11: error: compute.accelerator: unknown accelerator \"h100\" (expected v100-sxm2, "
            "rtx-3090, a100-sxm4-40gb, a100-sxm4-80gb, h100-sxm, h200-sxm or b200-sxm)\n"
            ":3:31: error: compute.utilisation: 2 is out of range (expected more than 0, at most "
            "1)\n");
}

TEST(PlanLoaderTest, TheProductOfThePartsIsTheRanks) {
  EXPECT_EQ(Findings({"parallelism.ranks=16"}),
            "error: parallelism.ranks: 16 is not tensor 8 x context 1 x data 1 x pipeline 1 = 8 "
            "(expected 8, or data: 2)\n");
  EXPECT_EQ(Findings({"parallelism.ranks=20"}),
            "error: parallelism.ranks: 20 is not tensor 8 x context 1 x data 1 x pipeline 1 = 8 "
            "(expected 8, or a multiple of 8, e.g. 24)\n");
}

TEST(PlanLoaderTest, HeadsAndWidthsAreDivided) {
  EXPECT_EQ(Findings({"parallelism.tensor=12"}),
            "error: parallelism.tensor: 12 does not divide model.heads 64 (expected 8 or 16)\n");
  EXPECT_EQ(Findings({"parallelism.tensor=128"}),
            "error: parallelism.tensor: 128 does not divide model.heads 64 (expected 64)\n");
  EXPECT_EQ(Findings({"model.kv_heads=32", "parallelism.tensor=16", "model.feed_forward=28680"}),
            "error: parallelism.tensor: 16 does not divide model.feed_forward 28680 (expected "
            "8)\n");
}

TEST(PlanLoaderTest, ModelsThatCannotBe) {
  EXPECT_EQ(Findings({"model.heads=100"}),
            "error: model.heads: 100 heads do not divide hidden 8192 (expected 64 or 128, or "
            "head_dim)\n"
            "error: model.heads: 100 heads cannot share 8 key/value heads evenly (expected 5 or 10 "
            "of these)\n");
  EXPECT_EQ(Findings({"model.experts={ count: 6 per_token: 7 feed_forward: 64 }"}),
            "error: model.experts.per_token: 7 of 6 experts (expected at most 6)\n");
}

// The first three layers of DeepSeek-V3 have no experts; its heads have widths of their own.
TEST(PlanLoaderTest, APresetsExpertsAndHeadsGoWithItsFields) {
  const auto findings_of = [](const std::string& model) {
    return LoadedPlan("model { preset: \"deepseek-v3\" " + model +
                      " }\nparallelism { tensor: 8 }\ncompute { accelerator: \"h100-sxm\" "
                      "utilisation: 0.5 memory_utilisation: 0.5 }\n"
                      "inference { queries: 1 batch: 1 prompt_tokens: 8 output_tokens: 2 }\n")
        .findings;
  };
  EXPECT_EQ(findings_of("layers: 4"), "");
  EXPECT_EQ(findings_of("layers: 4 heads: 96"), "");
  EXPECT_THAT(findings_of("layers: 3"),
              HasSubstr("error: model.layers: 3 are all dense: 3 of the model's have no experts"));
  EXPECT_THAT(
      findings_of("layers: 2 experts { dense_layers: 2 }"),
      HasSubstr("error: model.experts.dense_layers: 2 of 2 layers leave none with experts"));
  EXPECT_EQ(findings_of("layers: 2 experts { dense_layers: 1 }"), "");
}

TEST(PlanLoaderTest, WhatHasNoEffectIsRefused) {
  EXPECT_EQ(Findings({"inference.shared_reduction=SEPARATE"}),
            "error: inference.shared_reduction: the model has no shared expert (expected none)\n");
  EXPECT_EQ(
      Findings({"parallelism.context=2"}),
      "error: parallelism.context: inference plans are not context parallel (expected none)\n");
  EXPECT_EQ(Findings({"parallelism.sequence=true"}),
            "error: parallelism.sequence: inference divides tokens where experts are divided only "
            "(expected none, or expert: 2 or more)\n");
}

TEST(PlanLoaderTest, BatchesAreEqual) {
  EXPECT_EQ(Findings({"inference.batch=3"}),
            "error: inference.batch: 3 does not divide the 8 queries (expected 2 or 4)\n");
}

TEST(PlanLoaderTest, PlansTooLargeForMemoryAreRefused) {
  EXPECT_EQ(
      Findings({"inference.output_tokens=10000000"}),
      ":4:1: error: inference: up to 3240000000 operations of GPUs that differ (expected at most "
      "40000000: fewer tokens, micro-batches or iterations)\n");
  EXPECT_EQ(Findings({"inference.prompt_tokens=16777216", "inference.queries=1000000",
                      "inference.batch=1000000"}),
            "error: inference.prompt_tokens: one AllReduce of the prefill would be of 2.75e+17 "
            "bytes (expected at most 1 PiB: fewer tokens or a smaller batch)\n");
}

TEST(PlanLoaderTest, APrecisionTheAcceleratorLacksIsRefused) {
  EXPECT_EQ(Findings({"compute.accelerator=\"v100-sxm2\""}),
            "error: compute.accelerator: \"v100-sxm2\" has no BF16 matrix operations (expected "
            "model.precision FP32 or FP16)\n");
}

}  // namespace
}  // namespace railyard
