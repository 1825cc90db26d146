// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/layer_work.h"

#include <algorithm>
#include <cmath>

#include "simulator/units/divide_up.h"

namespace railyard {

LayerWork::LayerWork(const ModelConfig& model, uint32_t layer, uint32_t tensor, bool sequence)
    : model_(model), tensor_(tensor), has_experts_(model.HasExperts(layer)) {
  bool has_expert = false;
  for (const Weight& weight : LayerWeights(model, layer)) {
    if (weight.use == WeightUse::kAttention) {
      Add(weight, tensor, sequence, attention_);
    } else if (weight.use == WeightUse::kFeedForward) {
      Add(weight, tensor, sequence, feed_forward_);
    } else if (!has_expert) {
      Add(weight, 1, false, expert_);
      has_expert = true;
    }
  }
}

void LayerWork::Add(const Weight& weight, uint32_t tensor, bool sequence, Sums& sums) {
  const double share = static_cast<double>(weight.elements) / weight.PartsIn(tensor);
  sums.elements += share;
  if (!weight.matrix) return;
  const bool has_part_of_tokens = sequence && weight.parts_max == 1 && !weight.is_for_parts;
  sums.matrix_elements += has_part_of_tokens ? share / tensor : share;
}

Work LayerWork::Attention(const AttentionInput& input) const {
  const bool from_cache = input.cached_tokens > 0;
  double dims_per_pair = 2.0 * model_.head_dim;
  double cache_share = 1;  // of a token's keys and values that one GPU holds
  if (model_.latent_attention) {
    const LatentAttention& latent = *model_.latent_attention;
    dims_per_pair = from_cache ? 2.0 * latent.kv_rank + latent.rope_head_dim
                               : static_cast<double>(latent.nope_head_dim) + latent.rope_head_dim +
                                     latent.value_head_dim;
  } else {
    cache_share = 1 / std::min(tensor_, static_cast<double>(model_.kv_heads));
  }
  const auto tokens = static_cast<double>(input.tokens);
  return {.flops = 2 * attention_.matrix_elements * tokens +
                   2 * dims_per_pair * input.attended_pairs * model_.heads / tensor_,
          .memory_bytes = attention_.elements * PrecisionBytes(model_.weight_precision) +
                          static_cast<double>(CacheElementsPerToken(model_)) * cache_share *
                              static_cast<double>(input.cached_tokens) *
                              PrecisionBytes(model_.precision)};
}

Work LayerWork::FeedForward(uint64_t tokens) const {
  Work work = SharedFeedForward(tokens);
  if (!has_experts_) return work;
  const auto token_count = static_cast<double>(tokens);
  const double count = model_.experts->count;
  const double per_token = model_.experts->per_token;
  const double needed = count * (1 - std::pow(1 - per_token / count, token_count));
  work.flops += 2 * expert_.matrix_elements * per_token * token_count / tensor_;
  work.memory_bytes +=
      expert_.elements * needed / tensor_ * PrecisionBytes(model_.weight_precision);
  return work;
}

Work LayerWork::SharedFeedForward(uint64_t tokens) const {
  return {.flops = 2 * feed_forward_.matrix_elements * static_cast<double>(tokens),
          .memory_bytes = feed_forward_.elements * PrecisionBytes(model_.weight_precision)};
}

Work LayerWork::RoutedFeedForward(uint64_t tokens, uint32_t active) const {
  return {.flops = 2 * expert_.matrix_elements * static_cast<double>(tokens),
          .memory_bytes = expert_.elements * active * PrecisionBytes(model_.weight_precision)};
}

Work EmbeddingWork(const ModelConfig& model, uint64_t tokens) {
  return {
      .flops = 0,
      .memory_bytes = static_cast<double>(tokens) * model.hidden *
                      (PrecisionBytes(model.weight_precision) + PrecisionBytes(model.precision))};
}

Work OutputWork(const ModelConfig& model, uint64_t tokens, uint32_t tensor) {
  const double elements = static_cast<double>(VocabularyShare(model, tensor)) * model.hidden;
  return {.flops = 2 * elements * static_cast<double>(tokens),
          .memory_bytes = elements * PrecisionBytes(model.weight_precision)};
}

double ForwardFlops(const ModelConfig& model, uint64_t sequences, uint64_t sequence_tokens) {
  const uint64_t tokens = sequences * sequence_tokens;
  const AttentionInput input{.tokens = tokens,
                             .attended_pairs = AttendedPairs(model, sequences, sequence_tokens)};
  const LayerWork first(model, 0, 1, false);
  const LayerWork last(model, model.layers - 1, 1, false);
  double flops = OutputWork(model, tokens, 1).flops;
  for (uint32_t layer = 0; layer < model.layers; ++layer) {
    const LayerWork& work = model.HasExperts(layer) ? last : first;
    flops += work.Attention(input).flops + work.FeedForward(tokens).flops;
  }
  return flops;
}

uint64_t VocabularyShare(const ModelConfig& model, uint32_t tensor) {
  return DivideUp(model.vocabulary, tensor);
}

}  // namespace railyard
