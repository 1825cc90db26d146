// SPDX-License-Identifier: GPL-2.0-only
// Computes the work of one GPU of a tensor-parallel group in the parts of a model. A GPU does its
// share of the work with weights that tensor parallelism divides. Every GPU of the group does the
// work with all other weights, with sequence parallelism for its share of the tokens alone.
#pragma once

#include <cstdint>

#include "workloads/plans/model/compute_cost.h"
#include "workloads/plans/model/model_config.h"

namespace railyard {

struct AttentionInput {
  uint64_t tokens = 0;         // that pass the layer
  double attended_pairs = 0;   // (query, key) pairs of them
  uint64_t cached_tokens = 0;  // read from the cache as keys and values; 0 without cache
};

class LayerWork {
 public:
  // Computes the work of layer `layer`; identical layers have equal work. `model` must outlive
  // this.
  LayerWork(const ModelConfig& model, uint32_t layer, uint32_t tensor, bool sequence);

  Work Attention(const AttentionInput& input) const;
  // With experts, tokens are assumed to be routed evenly and independently; the GPU reads the
  // expected number of experts that at least one token needs.
  Work FeedForward(uint64_t tokens) const;
  // These return the two parts of FeedForward() with expert parallelism: the router and the shared
  // expert, which tensor parallelism divides; and the undivided routed experts of one GPU, `active`
  // of which receive `tokens` in total.
  Work SharedFeedForward(uint64_t tokens) const;
  Work RoutedFeedForward(uint64_t tokens, uint32_t active) const;

 private:
  struct Sums {
    double matrix_elements = 0;  // in one GPU's matrix products
    double elements = 0;         // read by one GPU
  };
  static void Add(const Weight& weight, uint32_t tensor, bool sequence, Sums& sums);

  const ModelConfig& model_;
  double tensor_;
  Sums attention_;
  Sums feed_forward_;
  Sums expert_;  // of one undivided expert
  bool has_experts_ = false;
};

// EmbeddingWork() returns the work of the embedding's look-up for `tokens`, OutputWork() that of
// the output layer.
Work EmbeddingWork(const ModelConfig& model, uint64_t tokens);
Work OutputWork(const ModelConfig& model, uint64_t tokens, uint32_t tensor);

// Returns the floating-point operations of the forward pass of whole sequences, 2 per multiply-add.
// Softmax, norms, activation functions and residual sums are left out, as in published counts.
double ForwardFlops(const ModelConfig& model, uint64_t sequences, uint64_t sequence_tokens);

// Returns the rows of the embedding on each GPU of a group: the vocabulary is padded to a multiple
// of the group's size.
uint64_t VocabularyShare(const ModelConfig& model, uint32_t tensor);

}  // namespace railyard
