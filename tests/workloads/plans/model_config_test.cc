// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/model_config.h"

#include <gtest/gtest.h>

#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/model/model_presets.h"

namespace railyard {
namespace {

ModelConfig Preset(std::string_view name) {
  const ModelPreset* const preset = FindModelPreset(name);
  EXPECT_NE(preset, nullptr) << name;
  return preset != nullptr ? preset->config : ModelConfig{};
}

double TrainingFlopsPerToken(const ModelConfig& model, uint64_t sequence) {
  return 3 * ForwardFlops(model, 1, sequence) / static_cast<double>(sequence);
}

TEST(ModelConfigTest, EveryPresetHasThePublishedParametersWithinOnePercent) {
  for (const ModelPreset& preset : ModelPresets()) {
    EXPECT_NEAR(static_cast<double>(ParameterCount(preset.config)) / preset.published_parameters, 1,
                0.01)
        << preset.name;
  }
}

TEST(ModelConfigTest, ParametersAreThoseOfTheCheckpoints) {
  EXPECT_EQ(ParameterCount(Preset("gpt-2")), 124'439'808u);
  EXPECT_EQ(ParameterCount(Preset("gpt-2-xl")), 1'557'611'200u);
  EXPECT_EQ(ParameterCount(Preset("bert-large")), 335'141'888u);
  EXPECT_EQ(ParameterCount(Preset("llama-2-70b")), 68'976'648'192u);
  EXPECT_EQ(ParameterCount(Preset("llama-3-8b")), 8'030'261'248u);
  EXPECT_EQ(ParameterCount(Preset("llama-3-70b")), 70'553'706'496u);
  EXPECT_EQ(ParameterCount(Preset("mixtral-8x7b")), 46'702'792'704u);
}

// Model cards and papers, as the presets name them.
TEST(ModelConfigTest, ActiveParametersAreThePublishedOnes) {
  EXPECT_NEAR(static_cast<double>(ActiveParameterCount(Preset("mixtral-8x7b"))), 12.9e9, 0.129e9);
  EXPECT_NEAR(static_cast<double>(ActiveParameterCount(Preset("mixtral-8x22b"))), 39e9, 0.39e9);
  EXPECT_NEAR(static_cast<double>(ActiveParameterCount(Preset("qwen1.5-moe-a2.7b"))), 2.7e9,
              0.027e9);
  EXPECT_NEAR(static_cast<double>(ActiveParameterCount(Preset("qwen3-235b-a22b"))), 22e9, 0.22e9);
}

// Zhao et al.: "Insights into DeepSeek-V3", ISCA 2025, table 2: 250 GFLOP per token of training at
// sequences of 4,096.
TEST(ModelConfigTest, TrainingDeepSeekV3TakesThePublishedOperations) {
  EXPECT_NEAR(TrainingFlopsPerToken(Preset("deepseek-v3"), 4096), 250e9, 2.5e9);
}

// Narayanan et al. (arXiv 2104.04473), section 5.1: 96 B s l h^2 (1 + s/6h + V/16lh) with every
// layer's forward pass done twice, that is 4 of its passes instead of 3, and whole attention. The
// output layer's is not done twice.
TEST(ModelConfigTest, OperationsOfGptAreMegatronsFormula) {
  ModelConfig model = Preset("gpt-3-175b");
  model.causal = false;
  const double s = 2048;
  const double l = model.layers;
  const double h = model.hidden;
  const double v = model.vocabulary;
  const double formula = 96 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  const double layers = ForwardFlops(model, 1, 2048) - OutputWork(model, 2048, 1).flops;
  EXPECT_NEAR((4 * layers + 3 * OutputWork(model, 2048, 1).flops) / formula, 1, 0.001);
}

// Operations of most presets are not published. They are 2 for each parameter that a token is
// multiplied by, which are all active ones but look-up tables, norms and biases (Kaplan et al.,
// arXiv 2001.08361, section 2.1), and 2 for each number of a query, key and value it attends to.
// Parameters are the published ones; a tied embedding multiplies too.
TEST(ModelConfigTest, OperationsFollowFromPublishedParametersWithinOnePercent) {
  for (const ModelPreset& preset : ModelPresets()) {
    const ModelConfig& model = preset.config;
    const double tokens = 512;
    double matrices = static_cast<double>(ActiveParameterCount(model));
    matrices -= static_cast<double>(model.positions + model.token_types) * model.hidden;
    if (!model.tied_embeddings) matrices -= static_cast<double>(model.vocabulary) * model.hidden;
    double dims = 2.0 * model.head_dim;
    if (model.latent_attention) {
      dims = model.latent_attention->nope_head_dim + model.latent_attention->rope_head_dim +
             model.latent_attention->value_head_dim;
    }
    const double pairs = model.causal ? tokens * (tokens + 1) / 2 : tokens * tokens;
    const double expected = 2 * matrices * tokens + 2 * dims * model.heads * pairs * model.layers;
    EXPECT_NEAR(ForwardFlops(model, 1, 512) / expected, 1, 0.01) << preset.name;
  }
}

// Brown et al. (arXiv 2005.14165), table D.1: 3.14e23 for 300 billion tokens, without attention
// scores, which are 1 % at this size.
TEST(ModelConfigTest, OperationsOfGpt3ArePublished) {
  EXPECT_NEAR(TrainingFlopsPerToken(Preset("gpt-3-175b"), 2048) * 300e9 / 3.14e23, 1, 0.02);
}

// Zhao et al., table 1: bytes of cache per token in BF16.
TEST(ModelConfigTest, CachesHaveThePublishedBytesPerToken) {
  const auto bytes = [](const ModelConfig& model) {
    return CacheElementsPerToken(model) * model.layers * 2;
  };
  EXPECT_EQ(bytes(Preset("deepseek-v3")), 70'272u);
  EXPECT_EQ(bytes(Preset("llama-3-405b")), 516'096u);
}

TEST(ModelConfigTest, ACausalModelAttendsToHalf) {
  ModelConfig model = Preset("gpt-2");
  EXPECT_EQ(AttendedPairs(model, 3, 4), 3 * (1 + 2 + 3 + 4));
  model.causal = false;
  EXPECT_EQ(AttendedPairs(model, 3, 4), 3 * 4 * 4);
}

}  // namespace
}  // namespace railyard
