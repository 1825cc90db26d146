// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/model_config.h"

#include <algorithm>
#include <utility>

namespace railyard {
namespace {

// Numbers of parts (Weight::parts_max) of weights that are not divided, and of those that can be
// divided by any number.
constexpr uint32_t kWhole = 1;
constexpr uint32_t kDivided = UINT32_MAX;

class WeightList {
 public:
  WeightList(const ModelConfig& model, WeightUse use) : model_(model), use_(use) {}

  void Matrix(uint64_t in, uint64_t out, uint32_t parts_max, bool bias) {
    Add(in * out, parts_max, true);
    if (bias) Add(out, parts_max, false);
  }
  void Norm(uint64_t width) { Add(width * (model_.norm_bias ? 2 : 1), kWhole, false); }
  // Marks what has been added from the weight `first` on, if it is whole.
  void MarkForParts(size_t first) {
    for (size_t i = first; i < weights_.size(); ++i) {
      weights_[i].is_for_parts = weights_[i].parts_max == kWhole;
    }
  }
  size_t size() const { return weights_.size(); }
  void Add(uint64_t elements, uint32_t parts_max, bool matrix) {
    weights_.push_back(
        {.use = use_, .elements = elements, .parts_max = parts_max, .matrix = matrix});
  }
  void Use(WeightUse use) { use_ = use; }
  std::vector<Weight> Take() { return std::move(weights_); }

 private:
  const ModelConfig& model_;
  WeightUse use_;
  std::vector<Weight> weights_;
};

// The output of a row-parallel layer is summed before its bias is added: that bias is whole on
// every GPU.
void AddAttention(const ModelConfig& model, WeightList& list) {
  const uint64_t hidden = model.hidden;
  const uint64_t heads = model.heads;
  const bool qkv_bias = model.linear_bias || model.qkv_bias;
  list.Norm(hidden);
  if (model.latent_attention) {
    const LatentAttention& latent = *model.latent_attention;
    const uint64_t query_dim = uint64_t{latent.nope_head_dim} + latent.rope_head_dim;
    if (latent.query_rank > 0) {
      list.Matrix(hidden, latent.query_rank, kWhole, qkv_bias);
      list.Norm(latent.query_rank);
      list.Matrix(latent.query_rank, heads * query_dim, kDivided, qkv_bias);
    } else {
      list.Matrix(hidden, heads * query_dim, kDivided, qkv_bias);
    }
    list.Matrix(hidden, uint64_t{latent.kv_rank} + latent.rope_head_dim, kWhole, qkv_bias);
    list.Norm(latent.kv_rank);
    list.Matrix(latent.kv_rank, heads * (uint64_t{latent.nope_head_dim} + latent.value_head_dim),
                kDivided, qkv_bias);
    list.Matrix(heads * latent.value_head_dim, hidden, kDivided, false);
  } else {
    list.Matrix(hidden, heads * model.head_dim, kDivided, qkv_bias);
    // More GPUs than key heads hold copies of whole heads (vLLM, layers/linear.py:
    // num_kv_head_replicas).
    const size_t keys_and_values = list.size();
    list.Matrix(hidden, 2 * uint64_t{model.kv_heads} * model.head_dim, model.kv_heads, qkv_bias);
    list.MarkForParts(keys_and_values);
    list.Matrix(heads * model.head_dim, hidden, kDivided, false);
  }
  if (model.query_key_norm) {
    const size_t norms = list.size();
    list.Norm(model.head_dim);
    list.Norm(model.head_dim);
    list.MarkForParts(norms);
  }
  if (model.linear_bias) list.Add(hidden, kWhole, false);
}

void AddNetwork(const ModelConfig& model, uint64_t width, WeightList& list) {
  list.Matrix(model.hidden, width, kDivided, model.linear_bias);
  if (model.gated_feed_forward) list.Matrix(model.hidden, width, kDivided, model.linear_bias);
  list.Matrix(width, model.hidden, kDivided, false);
  if (model.linear_bias) list.Add(model.hidden, kWhole, false);
}

uint64_t ExpertElements(const ModelConfig& model) {
  return (model.gated_feed_forward ? 3 : 2) * uint64_t{model.hidden} * model.experts->feed_forward;
}

}  // namespace

std::vector<Weight> LayerWeights(const ModelConfig& model, uint32_t layer) {
  WeightList list(model, WeightUse::kAttention);
  AddAttention(model, list);
  list.Use(WeightUse::kFeedForward);
  list.Norm(model.hidden);
  if (!model.HasExperts(layer)) {
    AddNetwork(model, model.feed_forward, list);
    return list.Take();
  }
  const Experts& experts = *model.experts;
  list.Matrix(model.hidden, experts.count, kWhole, false);
  if (experts.router_bias) list.Add(experts.count, kWhole, false);
  if (experts.shared_feed_forward > 0) {
    AddNetwork(model, experts.shared_feed_forward, list);
    if (experts.shared_gate) list.Matrix(model.hidden, 1, kWhole, false);
  }
  list.Use(WeightUse::kRoutedExpert);
  for (uint32_t i = 0; i < experts.count; ++i) list.Add(ExpertElements(model), kDivided, true);
  return list.Take();
}

bool Lora::IsOfAttention() const {
  return std::any_of(matrices.begin(), matrices.end(),
                     [](LoraMatrix matrix) { return matrix <= LoraMatrix::kAttentionOutput; });
}

std::vector<Weight> AdapterWeights(const ModelConfig& model, const Lora& lora) {
  const uint64_t hidden = model.hidden;
  const uint64_t heads_width = uint64_t{model.heads} * model.head_dim;
  const uint64_t kv_width = uint64_t{model.kv_heads} * model.head_dim;
  WeightList list(model, WeightUse::kAttention);
  const auto by_outputs = [&](WeightUse use, uint64_t in, uint64_t out, uint32_t parts_max) {
    list.Use(use);
    list.Matrix(in, lora.rank, kWhole, false);
    list.Matrix(lora.rank, out, parts_max, false);
  };
  const auto by_inputs = [&](WeightUse use, uint64_t in, uint64_t out) {
    list.Use(use);
    list.Matrix(in, lora.rank, kDivided, false);
    list.Matrix(lora.rank, out, kWhole, false);
  };
  for (const LoraMatrix matrix : lora.matrices) {
    switch (matrix) {
      case LoraMatrix::kQuery:
        by_outputs(WeightUse::kAttention, hidden, heads_width, kDivided);
        break;
      case LoraMatrix::kKey:
      case LoraMatrix::kValue:
        by_outputs(WeightUse::kAttention, hidden, kv_width, model.kv_heads);
        break;
      case LoraMatrix::kAttentionOutput:
        by_inputs(WeightUse::kAttention, heads_width, hidden);
        break;
      case LoraMatrix::kGate:
      case LoraMatrix::kUp:
        by_outputs(WeightUse::kFeedForward, hidden, model.feed_forward, kDivided);
        break;
      case LoraMatrix::kDown:
        by_inputs(WeightUse::kFeedForward, model.feed_forward, hidden);
        break;
    }
  }
  list.MarkForParts(0);
  return list.Take();
}

std::vector<Weight> EmbeddingWeights(const ModelConfig& model) {
  WeightList list(model, WeightUse::kEmbedding);
  list.Add(uint64_t{model.vocabulary} * model.hidden, kDivided, false);
  if (model.positions > 0) list.Add(uint64_t{model.positions} * model.hidden, kWhole, false);
  if (model.token_types > 0) list.Add(uint64_t{model.token_types} * model.hidden, kWhole, false);
  if (model.embedding_norm) list.Norm(model.hidden);
  return list.Take();
}

std::vector<Weight> OutputWeights(const ModelConfig& model) {
  WeightList list(model, WeightUse::kOutput);
  if (model.final_norm) list.Norm(model.hidden);
  if (model.pooler) list.Matrix(model.hidden, model.hidden, kWhole, true);
  if (!model.tied_embeddings) list.Matrix(model.hidden, model.vocabulary, kDivided, false);
  return list.Take();
}

uint64_t ParameterCount(const ModelConfig& model) {
  uint64_t count = 0;
  for (const Weight& weight : EmbeddingWeights(model)) count += weight.elements;
  for (uint32_t layer = 0; layer < model.layers; ++layer) {
    for (const Weight& weight : LayerWeights(model, layer)) count += weight.elements;
  }
  for (const Weight& weight : OutputWeights(model)) count += weight.elements;
  return count;
}

uint64_t ActiveParameterCount(const ModelConfig& model) {
  uint64_t count = ParameterCount(model);
  for (uint32_t layer = 0; layer < model.layers; ++layer) {
    if (!model.HasExperts(layer)) continue;
    count -= (uint64_t{model.experts->count} - model.experts->per_token) * ExpertElements(model);
  }
  return count;
}

uint64_t CacheElementsPerToken(const ModelConfig& model) {
  if (model.latent_attention) {
    return uint64_t{model.latent_attention->kv_rank} + model.latent_attention->rope_head_dim;
  }
  return 2 * uint64_t{model.kv_heads} * model.head_dim;
}

double AttendedPairs(const ModelConfig& model, uint64_t sequences, uint64_t sequence_tokens) {
  const auto count = static_cast<double>(sequences);
  const auto tokens = static_cast<double>(sequence_tokens);
  return model.causal ? count * tokens * (tokens + 1) / 2 : count * tokens * tokens;
}

}  // namespace railyard
