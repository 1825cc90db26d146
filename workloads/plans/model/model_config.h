// SPDX-License-Identifier: GPL-2.0-only
// Describes a transformer's shape and derives its weights. Biases, norms and routers are included.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/precision.h"

namespace railyard {

// Describes multi-head latent attention: DeepSeek-V2 (arXiv 2405.04434), section 2.1.
struct LatentAttention {
  uint32_t query_rank = 0;  // 0 if queries are not compressed
  uint32_t kv_rank = 0;
  uint32_t nope_head_dim = 0;
  uint32_t rope_head_dim = 0;
  uint32_t value_head_dim = 0;
};

struct Experts {
  uint32_t count = 0;
  uint32_t per_token = 0;
  uint32_t feed_forward = 0;
  uint32_t shared_feed_forward = 0;  // 0 without a shared expert
  bool shared_gate = false;
  bool router_bias = false;
  uint32_t dense_layers = 0;  // number of first layers without experts
  // Experts form `groups` groups of consecutive experts, of equal size; a token's experts are in
  // `groups_per_token` of them.
  uint32_t groups = 1;
  uint32_t groups_per_token = 1;
  ExpertKernel kernel = ExpertKernel::kNone;
  uint32_t kernel_sms = 0;    // 0 for the kernel's default
  uint32_t nvlink_ranks = 0;  // consecutive ranks of a group that NVLink joins; 0 for 8
};

struct ModelConfig {
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t feed_forward = 0;
  bool gated_feed_forward = false;
  uint32_t vocabulary = 0;
  uint32_t positions = 0;
  uint32_t token_types = 0;
  bool tied_embeddings = false;
  bool linear_bias = false;
  bool qkv_bias = false;
  bool norm_bias = false;
  bool query_key_norm = false;
  bool embedding_norm = false;
  bool final_norm = true;
  bool pooler = false;
  bool causal = true;
  std::optional<LatentAttention> latent_attention = {};
  std::optional<Experts> experts = {};
  Precision precision = Precision::kBf16;
  Precision weight_precision = Precision::kBf16;

  bool HasExperts(uint32_t layer) const { return experts && layer >= experts->dense_layers; }
};

enum class WeightUse : uint8_t {
  kAttention,
  kFeedForward,   // dense, or the router and the shared expert
  kRoutedExpert,  // one tensor per expert
  kEmbedding,
  kOutput,
};

// Describes one weight of the model. A tied output layer shares the embedding's weight and has no
// entry.
struct Weight {
  WeightUse use = WeightUse::kAttention;
  uint64_t elements = 0;
  // The largest number of parts into which tensor parallelism divides it. If the group has more
  // GPUs, several hold the same part: of a weight with one part, each holds all.
  uint32_t parts_max = 1;
  bool matrix = false;  // multiplies the activations, so it causes operations
  // Each GPU applies it to its own heads or columns, although it is whole there: its gradient is
  // the sum of the group's.
  bool is_for_parts = false;

  uint32_t PartsIn(uint32_t tensor) const { return std::min(tensor, parts_max); }
};

// Names the matrices that can have adapters (Hu et al., arXiv 2106.09685).
enum class LoraMatrix : uint8_t { kQuery, kKey, kValue, kAttentionOutput, kGate, kUp, kDown };
struct Lora {
  uint32_t rank = 0;
  std::vector<LoraMatrix> matrices;  // without repetition

  bool IsOfAttention() const;  // if any of them is
};
// Returns the adapters' weights in one layer. Precondition: a model without latent attention, and
// without experts if a matrix of the feed-forward network is adapted. If tensor parallelism divides
// a matrix by its outputs, each rank has the adapter's whole first matrix; if by its inputs, the
// whole second, which it applies before the outputs are summed.
std::vector<Weight> AdapterWeights(const ModelConfig& model, const Lora& lora);

// Returns the weights in the order of the forward pass.
std::vector<Weight> LayerWeights(const ModelConfig& model, uint32_t layer);
std::vector<Weight> EmbeddingWeights(const ModelConfig& model);
std::vector<Weight> OutputWeights(const ModelConfig& model);  // after the last layer

uint64_t ParameterCount(const ModelConfig& model);
// Returns the number of parameters that are used for one token: of the routed experts, only
// `per_token`.
uint64_t ActiveParameterCount(const ModelConfig& model);

// Returns the elements of keys and values that one token adds to one layer's cache, over all GPUs.
uint64_t CacheElementsPerToken(const ModelConfig& model);

// Returns the number of (query, key) pairs of whole sequences: those that a causal mask admits, or
// all.
double AttendedPairs(const ModelConfig& model, uint64_t sequences, uint64_t sequence_tokens);

}  // namespace railyard
