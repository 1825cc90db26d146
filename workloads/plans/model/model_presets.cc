// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/model_presets.h"

namespace railyard {
namespace {

// LayerNorm, biases, learned positions, output layer tied to the embedding.
ModelConfig Gpt2(uint32_t layers, uint32_t hidden, uint32_t heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .feed_forward = 4 * hidden,
          .vocabulary = 50257,
          .positions = 1024,
          .tied_embeddings = true,
          .linear_bias = true,
          .norm_bias = true,
          .precision = Precision::kFp16,
          .weight_precision = Precision::kFp16};
}

ModelConfig Gpt3(uint32_t layers, uint32_t hidden, uint32_t heads) {
  ModelConfig model = Gpt2(layers, hidden, heads);
  model.positions = 2048;
  return model;
}

// Segment embeddings, a norm after the embeddings instead of one before the output, a pooler.
ModelConfig Bert(uint32_t layers, uint32_t hidden, uint32_t heads) {
  ModelConfig model = Gpt2(layers, hidden, heads);
  model.vocabulary = 30522;
  model.positions = 512;
  model.token_types = 2;
  model.embedding_norm = true;
  model.final_norm = false;
  model.pooler = true;
  model.causal = false;
  return model;
}

// A model with RMSNorm, SwiGLU, no biases and an untied output layer.
ModelConfig Llama(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t kv_heads,
                  uint32_t feed_forward, uint32_t vocabulary) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = hidden / heads,
          .feed_forward = feed_forward,
          .gated_feed_forward = true,
          .vocabulary = vocabulary};
}

// In every layer.
ModelConfig WithExperts(ModelConfig model, const Experts& experts) {
  model.experts = experts;
  model.feed_forward = 0;
  return model;
}

ModelConfig DeepSeekV3() {
  ModelConfig model = Llama(61, 7168, 128, 128, 18432, 129280);
  model.head_dim = 128;
  model.latent_attention = LatentAttention{.query_rank = 1536,
                                           .kv_rank = 512,
                                           .nope_head_dim = 128,
                                           .rope_head_dim = 64,
                                           .value_head_dim = 128};
  model.experts = Experts{.count = 256,
                          .per_token = 8,
                          .feed_forward = 2048,
                          .shared_feed_forward = 2048,
                          .router_bias = true,
                          .dense_layers = 3,
                          .groups = 8,
                          .groups_per_token = 4};
  model.weight_precision = Precision::kFp8;
  return model;
}

ModelConfig Qwen15Moe() {
  ModelConfig model = Llama(24, 2048, 16, 16, 0, 151936);
  model.qkv_bias = true;
  return WithExperts(model, {.count = 60,
                             .per_token = 4,
                             .feed_forward = 1408,
                             .shared_feed_forward = 5632,
                             .shared_gate = true});
}

ModelConfig Qwen3Moe(uint32_t layers, uint32_t hidden, uint32_t heads, uint32_t kv_heads,
                     uint32_t feed_forward) {
  ModelConfig model = Llama(layers, hidden, heads, kv_heads, 0, 151936);
  model.head_dim = 128;
  model.query_key_norm = true;
  return WithExperts(model, {.count = 128, .per_token = 8, .feed_forward = feed_forward});
}

}  // namespace

const std::vector<ModelPreset>& ModelPresets() {
  static const std::vector<ModelPreset> kPresets = {
      {"gpt-2", "GPT-2 small", "config.json of openai-community/gpt2", 124.4e6,
       "openai-community/gpt2 model card: 124M; its checkpoint: 124,439,808", Gpt2(12, 768, 12)},
      {"gpt-2-medium", "GPT-2 medium", "config.json of openai-community/gpt2-medium", 354.8e6,
       "openai-community/gpt2-medium model card: 355M", Gpt2(24, 1024, 16)},
      {"gpt-2-large", "GPT-2 large", "config.json of openai-community/gpt2-large", 774.0e6,
       "openai-community/gpt2-large model card: 774M", Gpt2(36, 1280, 20)},
      {"gpt-2-xl", "GPT-2 XL", "config.json of openai-community/gpt2-xl", 1557.6e6,
       "openai-community/gpt2-xl model card: 1.5B; its checkpoint: 1,557,611,200",
       Gpt2(48, 1600, 25)},
      {"gpt-1.5b", "GPT of 1.5 billion parameters whose heads 2, 4, 8 and 16 divide",
       "DeepSpeed's tutorial on ZeRO: 48 layers, hidden 1600, 16 heads", 1557.6e6,
       "as GPT-2 XL: the number of heads changes none", Gpt2(48, 1600, 16)},
      {"gpt-3b", "GPT of 3 billion parameters",
       "GPT-2 XL's depth; 12 layers hidden^2 gives the hidden size: only the size is published",
       3.18e9, "12 x 48 x 2304^2 + 50257 x 2304", Gpt2(48, 2304, 24)},
      {"gpt-3-175b", "GPT-3", "Brown et al. (arXiv 2005.14165), table 2.1", 175e9,
       "Brown et al., table 2.1: 175.0B", Gpt3(96, 12288, 96)},
      {"bert-base", "BERT base", "Devlin et al. (arXiv 1810.04805), section 3", 110e6,
       "Devlin et al., section 3: 110M", Bert(12, 768, 12)},
      {"bert-large", "BERT large", "Devlin et al. (arXiv 1810.04805), section 3", 335.1e6,
       "google-bert/bert-large-uncased: 335,141,888 without its two heads (the paper: 340M)",
       Bert(24, 1024, 16)},
      {"llama-2-7b", "Llama 2 7B", "config.json of meta-llama/Llama-2-7b", 6.738e9,
       "meta-llama/Llama-2-7b checkpoint: 6,738,415,616", Llama(32, 4096, 32, 32, 11008, 32000)},
      {"llama-2-13b", "Llama 2 13B", "config.json of meta-llama/Llama-2-13b", 13.016e9,
       "meta-llama/Llama-2-13b checkpoint: 13,015,864,320", Llama(40, 5120, 40, 40, 13824, 32000)},
      {"llama-2-70b", "Llama 2 70B", "config.json of meta-llama/Llama-2-70b", 68.977e9,
       "meta-llama/Llama-2-70b checkpoint: 68,976,648,192", Llama(80, 8192, 64, 8, 28672, 32000)},
      {"llama-3-8b", "Llama 3 8B", "Llama team (arXiv 2407.21783), table 3", 8.030e9,
       "meta-llama/Meta-Llama-3-8B checkpoint: 8,030,261,248",
       Llama(32, 4096, 32, 8, 14336, 128256)},
      {"llama-3-70b", "Llama 3 70B", "Llama team (arXiv 2407.21783), table 3", 70.554e9,
       "meta-llama/Meta-Llama-3-70B checkpoint: 70,553,706,496",
       Llama(80, 8192, 64, 8, 28672, 128256)},
      {"llama-3-405b", "Llama 3.1 405B",
       "Llama team (arXiv 2407.21783), table 3; 8 key/value heads", 405e9,
       "Llama team (arXiv 2407.21783): 405B", Llama(126, 16384, 128, 8, 53248, 128256)},
      {"mixtral-8x7b", "Mixtral 8x7B", "Jiang et al. (arXiv 2401.04088), table 1", 46.7e9,
       "Mistral AI's announcement: 46.7B, 12.9B of them per token",
       WithExperts(Llama(32, 4096, 32, 8, 0, 32000),
                   {.count = 8, .per_token = 2, .feed_forward = 14336})},
      {"mixtral-8x22b", "Mixtral 8x22B", "config.json of mistralai/Mixtral-8x22B-v0.1", 141e9,
       "Mistral AI's announcement: 141B, 39B of them per token",
       WithExperts(Llama(56, 6144, 48, 8, 0, 32000),
                   {.count = 8, .per_token = 2, .feed_forward = 16384})},
      {"deepseek-v3", "DeepSeek V3, without its multi-token prediction module",
       "config.json of deepseek-ai/DeepSeek-V3; DeepSeek-AI (arXiv 2412.19437), section 4.2", 671e9,
       "DeepSeek-AI (arXiv 2412.19437): 671B, 37B of them per token", DeepSeekV3()},
      {"qwen1.5-moe-a2.7b", "Qwen1.5 MoE", "config.json of Qwen/Qwen1.5-MoE-A2.7B", 14.3e9,
       "Qwen/Qwen1.5-MoE-A2.7B model card: 14.3B, 2.7B of them per token", Qwen15Moe()},
      {"qwen3-30b-a3b", "Qwen3 MoE 30B", "config.json of Qwen/Qwen3-30B-A3B", 30.5e9,
       "Qwen/Qwen3-30B-A3B model card: 30.5B, 3.3B of them per token",
       Qwen3Moe(48, 2048, 32, 4, 768)},
      {"qwen3-235b-a22b", "Qwen3 MoE 235B", "config.json of Qwen/Qwen3-235B-A22B", 235e9,
       "Qwen/Qwen3-235B-A22B model card: 235B, 22B of them per token",
       Qwen3Moe(94, 4096, 64, 4, 1536)},
  };
  return kPresets;
}

const ModelPreset* FindModelPreset(std::string_view name) {
  for (const ModelPreset& preset : ModelPresets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace railyard
