// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/layer_work.h"

#include <gtest/gtest.h>

#include "workloads/plans/model/model_presets.h"

namespace railyard {
namespace {

// Llama 2 70B's layer: 8192 x (8192 + 2 x 1024 + 8192) of attention and 3 x 8192 x 28672, of which
// each of 8 GPUs has an eighth.
TEST(LayerWorkTest, TensorParallelismDividesMatrices) {
  const ModelConfig& model = FindModelPreset("llama-2-70b")->config;
  const LayerWork whole(model, 0, 1, false);
  const LayerWork eighth(model, 0, 8, false);
  const AttentionInput input{.tokens = 10, .attended_pairs = 55};
  EXPECT_EQ(whole.Attention(input).flops, 2.0 * 10 * 8192 * (8192 + 2048 + 8192) + 4.0 * 55 * 8192);
  EXPECT_EQ(eighth.Attention(input).flops, whole.Attention(input).flops / 8);
  EXPECT_EQ(whole.FeedForward(10).flops, 2.0 * 10 * 3 * 8192 * 28672);
  EXPECT_EQ(eighth.FeedForward(10).flops, whole.FeedForward(10).flops / 8);
}

// Two bytes per element: the matrices, the norm, and 8 heads' keys and values of 128 each, of which
// each of 8 GPUs holds one head's, and each of 16 too: so do their matrices of 2048 columns, which
// 16 GPUs hold twice.
TEST(LayerWorkTest, DecodingReadsWeightsAndCache) {
  const ModelConfig& model = FindModelPreset("llama-2-70b")->config;
  const AttentionInput input{.tokens = 1, .attended_pairs = 1000, .cached_tokens = 1000};
  EXPECT_EQ(LayerWork(model, 0, 1, false).Attention(input).memory_bytes,
            2.0 * (8192 * (8192 + 2048 + 8192) + 8192) + 2.0 * 1000 * 2 * 8 * 128);
  EXPECT_EQ(LayerWork(model, 0, 8, false).Attention(input).memory_bytes,
            2.0 * (8192 * (8192 + 2048 + 8192) / 8.0 + 8192) + 2.0 * 1000 * 2 * 128);
  EXPECT_EQ(LayerWork(model, 0, 16, false).Attention(input).memory_bytes,
            2.0 * (8192 * ((8192 + 8192) / 16.0 + 2048 / 8.0) + 8192) + 2.0 * 1000 * 2 * 128);
}

// A token needs 2 of 8 experts of 3 x 4096 x 14336; two tokens need 8 x (1 - (3/4)^2) = 3.5.
TEST(LayerWorkTest, ExpertsAreReadWhereATokenNeedsThem) {
  const ModelConfig& model = FindModelPreset("mixtral-8x7b")->config;
  const double expert = 3.0 * 4096 * 14336;
  const double router = 4096.0 * 8;
  const LayerWork work(model, 0, 1, false);
  EXPECT_EQ(work.FeedForward(1).flops, 2 * (2 * expert + router));
  EXPECT_EQ(work.FeedForward(1).memory_bytes, 2 * (2 * expert + router + 4096));
  EXPECT_EQ(work.FeedForward(2).memory_bytes, 2 * (3.5 * expert + router + 4096));
}

// With sequence parallelism a GPU puts its eighth of the tokens through the matrices that each
// holds whole: Megatron-LM's down-projections of DeepSeek-V3's attention, 7168 x (1536 + 512 + 64).
TEST(LayerWorkTest, SequenceParallelismDividesTheTokensOfWholeMatrices) {
  const ModelConfig& model = FindModelPreset("deepseek-v3")->config;
  const AttentionInput input{.tokens = 4096};
  const double down = 7168.0 * (1536 + 512 + 64);
  const double divided = 128.0 * (1536 * (128 + 64) + 512 * (128 + 128) + 128 * 7168) / 8;
  EXPECT_EQ(LayerWork(model, 0, 8, false).Attention(input).flops, 2.0 * 4096 * (down + divided));
  EXPECT_EQ(LayerWork(model, 0, 8, true).Attention(input).flops, 2.0 * 4096 * (down / 8 + divided));
  const double router = 7168.0 * 256;
  const double shared = 3.0 * 7168 * 2048 / 8;
  EXPECT_EQ(LayerWork(model, 60, 8, true).SharedFeedForward(4096).flops,
            2.0 * 4096 * (router / 8 + shared));
  // Keys and values of one head are for each GPU's own queries, of all tokens.
  ModelConfig one_head = FindModelPreset("llama-2-7b")->config;
  one_head.kv_heads = 1;
  EXPECT_EQ(LayerWork(one_head, 0, 8, true).Attention(input).flops,
            LayerWork(one_head, 0, 8, false).Attention(input).flops);
}

TEST(LayerWorkTest, TheVocabularyIsPadded) {
  const ModelConfig& model = FindModelPreset("gpt-2")->config;
  EXPECT_EQ(VocabularyShare(model, 1), 50257u);
  EXPECT_EQ(VocabularyShare(model, 8), 6283u);  // 8 x 6283 = 50264
}

}  // namespace
}  // namespace railyard
