// SPDX-License-Identifier: GPL-2.0-only
// Every preset and every shipped plan, run on 4 servers of 8 GPUs or more.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "workloads/plans/model/layered_presets.h"
#include "workloads/plans/model/model_presets.h"

namespace railyard::testing {
namespace {

class PresetsTest : public ProgramTest {
 protected:
  void ExpectCompleted(const EndedRun& run, const std::string& what) {
    ASSERT_EQ(run.exit.status, 0) << what << "\n" << run.exit.errors;
    EXPECT_EQ(run.Text("status"), "COMPLETED") << what;
    EXPECT_GT(run.Real("payload.total_bytes"), 0) << what;
    EXPECT_TRUE(run.At("conservation.ok").GetBool()) << what;
  }
  void ExpectRuns(const std::string& plan, const std::string& what) {
    scratch_.Write("plan.textproto", plan);
    ExpectCompleted(
        RunText(RailOptimized(4) + "workload { plan: \"plan.textproto\" operations_max: 40 }\n"),
        what);
  }
};

constexpr const char* kCompute =
    "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n";

// All layers, the first calls; as many GPUs share a layer as divide its heads.
TEST_F(PresetsTest, EveryTransformerAnswers) {
  for (const ModelPreset& preset : ModelPresets()) {
    const uint32_t heads = preset.config.heads;
    const uint32_t tensor = heads % 8 == 0 ? 8 : heads % 4 == 0 ? 4 : 5;
    const std::string replicas = std::to_string(32 / tensor);
    std::string plan = "model { preset: \"";
    plan += preset.name;
    plan += "\" }\nparallelism { tensor: " + std::to_string(tensor);
    plan += " data: " + replicas + " }\n";
    plan += kCompute;
    plan += "inference { queries: " + replicas;
    plan += " prompt_tokens: 16 output_tokens: 2 }\n";
    ExpectRuns(plan, std::string(preset.name));
  }
}

TEST_F(PresetsTest, EveryOtherModelTrains) {
  for (const LayeredPreset& preset : LayeredPresets()) {
    std::string plan = "model { preset: \"";
    plan += preset.name;
    plan += "\" }\nparallelism { data: 32 }\n";
    ExpectRuns(plan + kCompute + "training { micro_batch: 16 micro_batches: 1 }\n",
               std::string(preset.name));
  }
}

TEST_F(PresetsTest, EveryShippedPlanScenarioRuns) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(RAILYARD_SOURCE_DIR) +
                                                               "/simulator/scenarios")) {
    const std::string name = entry.path().stem().string();
    if (!name.starts_with("plan_")) continue;
    ++count;
    ExpectCompleted(RunFile(entry.path().string(), {"--no-estimate"}), name);
  }
  EXPECT_GE(count, 11u);
}

}  // namespace
}  // namespace railyard::testing
