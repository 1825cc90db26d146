// SPDX-License-Identifier: GPL-2.0-only
// What every rank of a pipeline stage does in training; ranks of a stage differ in the
// communicators only. Communicators are numbered by StageGroup here.
//
// Tensor parallel (Shoeybi et al., arXiv 1909.08053): in each layer the outputs of attention and of
// the feed-forward network are all-reduced forward and their inputs' gradients backward, tokens x
// hidden elements each; the embedding's output and the output layer's input gradient too, and three
// values per token of the loss. With sequence parallelism (Korthikanti et al., arXiv 2205.05198,
// section 4.2.2) each AllReduce is an AllGather before and a ReduceScatter after, and backward the
// inputs are gathered once more for the weights' gradients.
// Context parallel: keys and values of all parts of the sequence are gathered before attention,
// again before its backward pass, and their gradients reduce-scattered (Llama team, arXiv
// 2407.21783, section 3.3.2). Pipeline: a micro-batch's activations and gradients go to the next
// and previous stage while the stage works on; they are received from when the task before the one
// that needs them begins. Expert parallel: tokens go to their experts and back in the forward and
// in the backward pass (workloads/plans/expert_calls.h). Data parallel (Rajbhandari et al., arXiv
// 1910.02054): docs/workloads.md.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traces/trace.h"
#include "workloads/plans/expert_traffic.h"
#include "workloads/plans/plan.h"

namespace railyard {

enum class StageGroup : uint8_t {
  kTensor,
  kContext,
  kData,       // data and context together
  kEmbedding,  // first and last stage
  kActivationIn,
  kActivationOut,
  kGradientIn,
  kGradientOut,
  kExpert,
  kExpertData,  // of the same experts
  kNorm,        // of all gradients
};
inline constexpr uint32_t kStageGroupCount = 11;

// What an expert-parallel group of a stage exchanges, iteration by iteration.
class StageExchanges {
 public:
  StageExchanges(const Plan& plan, uint32_t stage, uint32_t group);
  // Precondition: the layer is the stage's and has experts.
  const ExpertExchange& At(uint32_t iteration, uint32_t micro_batch, uint32_t layer) const;
  const std::vector<ExpertExchange>& all() const { return exchanges_; }

 private:
  size_t layers_ = 0;
  uint32_t micro_batches_ = 0;
  std::vector<size_t> layer_index_;  // by layer of the model
  std::vector<ExpertExchange> exchanges_;
};

// Precondition: the plan's job is a Training, stage < its pipeline. With expert parallelism: of the
// rank of that place in the group of `exchanges`, else nullptr.
std::vector<TraceOperation> StageProgram(const Plan& plan, uint32_t stage,
                                         const StageExchanges* exchanges = nullptr,
                                         uint32_t expert_place = 0);
// No fewer than StageProgram's.
uint64_t StageOperationsBound(const Plan& plan);

// What the optimizer of a rank of that stage takes, once per iteration.
int64_t StageOptimizerPs(const Plan& plan, uint32_t stage);

// Layers first.first to first.second - 1 are those of that virtual stage.
std::pair<uint32_t, uint32_t> LayersOf(const Plan& plan, uint32_t virtual_stage);

}  // namespace railyard
