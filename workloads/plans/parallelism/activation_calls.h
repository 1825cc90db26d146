// SPDX-License-Identifier: GPL-2.0-only
// Writes the calls of one rank that follow from divided activations.
//
// Tensor parallel (Shoeybi et al., arXiv 1909.08053): in each layer the outputs of attention and of
// the feed-forward network are all-reduced forward and their inputs' gradients backward, tokens x
// hidden elements each; so are the embedding's output, the output layer's input gradient, and three
// values per token of the loss. With sequence parallelism (Korthikanti et al., arXiv 2205.05198,
// section 4.2.2) each AllReduce becomes an AllGather before and a ReduceScatter after, and in the
// backward pass the inputs are gathered again for the weights' gradients. Context parallel: keys
// and values of all parts of the sequence are gathered before attention, again before its backward
// pass, and their gradients reduce-scattered (Llama team, arXiv 2407.21783, section 3.3.2).
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/plan/plan.h"
#include "workloads/plans/program_writer.h"

namespace railyard {

// Writes the calls; a group of one rank makes none.
class ActivationCalls {
 public:
  // Both must outlive this. Precondition: the plan's job is a Training.
  ActivationCalls(const Plan& plan, ProgramWriter& writer);

  // These write the calls before and after the parts that tensor parallelism divides.
  void GatherInput();
  void ReduceOutput();
  // As these, for attention: before it; again, for the gradients of its weights; and the gradient
  // of its input. With latent attention the first matrices are whole, and what crosses the group is
  // what they compress (Megatron-LM, multi_latent_attention.py).
  void GatherAttentionInput();
  void GatherAttentionInputAgain();
  void ReduceAttentionInput();
  // Reduces the cross entropy over a divided vocabulary.
  void ReduceLoss();
  // Sums the gradients of weights that each rank holds in full, but computes for its part only.
  void SumWholeGradients(uint64_t elements);

  // These write the calls for keys and values before attention, and for their gradients after its
  // backward pass.
  void GatherContext();
  void ReduceContext();

  // Returns the elements that the rank sends to the next stage.
  uint64_t BoundaryElements() const;

 private:
  // Returns the elements per token that the group's divided matrices of attention take: the hidden
  // state, or compressed queries and keys and values, and the rotary part of the keys, which no
  // matrix takes.
  std::vector<uint64_t> AttentionWidths() const;
  void GatherTokens(uint64_t width);
  void ReduceTokens(uint64_t width);
  // Returns a rank's elements of `width` for each token of the micro-batch.
  uint64_t ElementsOf(uint64_t width) const;
  void OnTensorGroup(CollectiveKind kind, uint64_t count, Datatype datatype);
  void OnContextGroup(CollectiveKind kind);
  // Returns the elements of one rank's keys and values, for its part of the sequence.
  uint64_t KeyValueElements() const;

  const ModelConfig& model_;
  const Parallelism& parts_;
  const uint64_t tokens_;  // of a micro-batch, on one rank
  const Datatype activation_;
  const Datatype gradient_;
  ProgramWriter& writer_;
};

}  // namespace railyard
