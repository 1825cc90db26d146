// SPDX-License-Identifier: GPL-2.0-only
// Writes the operations of one rank in inference: the steps of its replica, through the layers of
// its stage. Each step has
//   - a reduction of the embeddings, whose table's rows are divided over the tensor group,
//   - in each layer one reduction of the attention's output and one of the feed-forward network's
//     (two with a shared expert that is reduced separately), tokens x hidden elements each: an
//     AllReduce, or with sequence parallelism a ReduceScatter and an AllGather,
//   - with expert parallelism, instead of the latter, the calls of ExpertCalls,
//   - a message with the activations to the next stage; from the last stage an AllGather of the
//     last tokens' logits, each GPU's share of the vocabulary, and the tokens to the first stage.
// A tensor group of one reduces nothing. With tensor parallelism alone and SEPARATE, this is the
// communication of DeepSeek-V3's own inference code (github.com/deepseek-ai/DeepSeek-V3,
// inference/model.py). Sampling takes no time.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"
#include "workloads/plans/inference/inference_schedule.h"
#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Holds the numbers of a rank's communicators in the trace.
struct InferenceCommunicators {
  uint32_t tensor = 0;
  uint32_t expert = 0;
  uint32_t activation_in = 0;  // pairs, in which rank 0 sends
  uint32_t activation_out = 0;
  uint32_t tokens = 0;  // from the last stage to the first
  // (communicator, elements per prompt token): keys and values from prefill ranks, or to decoding
  // ranks, the latter by replica.
  std::vector<std::vector<std::pair<uint32_t, uint64_t>>> caches;
};

// Computes the exchanges of an expert-parallel group, by layer and step of all slots.
class InferenceExchanges {
 public:
  InferenceExchanges(const Plan& plan, const InferenceSchedule& schedule, uint32_t stage,
                     uint32_t group);
  // Returns the tokens at each place of an expert-parallel group in a pass.
  static std::vector<uint64_t> TokensOf(const Plan& plan, const InferenceSchedule& schedule,
                                        uint32_t group, uint32_t pass);
  // Returns true if the group has tokens in the pass.
  bool HasTokens(uint32_t pass) const { return has_tokens_[pass]; }
  const ExpertExchange& At(uint32_t pass, uint32_t layer) const;
  const std::vector<ExpertExchange>& all() const { return exchanges_; }
  // Returns the number of passes over all slots: step i of slot j is pass i x slots + j.
  static uint32_t PassCount(const InferenceSchedule& schedule);

 private:
  uint32_t first_layer_ = 0;
  uint32_t layers_ = 0;
  std::vector<bool> has_tokens_;
  std::vector<ExpertExchange> exchanges_;
};

struct InferenceRank {
  uint32_t stage = 0;
  uint32_t replica = 0;
  uint32_t tensor = 0;        // place in the tensor group
  uint32_t expert_place = 0;  // in the expert-parallel group
};

// Returns the program of a rank. `exchanges` is nullptr without expert parallelism.
std::vector<TraceOperation> InferenceProgram(const Plan& plan, const InferenceSchedule& schedule,
                                             const InferenceRank& rank,
                                             const InferenceCommunicators& communicators,
                                             const InferenceExchanges* exchanges);
// Returns the program of a rank of the prefill group.
std::vector<TraceOperation> PrefillProgram(const Plan& plan, const InferenceSchedule& schedule,
                                           const InferenceCommunicators& communicators);

// Returns the stage's layers as [first, second).
std::pair<uint32_t, uint32_t> InferenceLayersOf(const Plan& plan, uint32_t stage);
// Returns the tokens at one place when tokens are dealt evenly over a tensor group.
uint64_t TokensOfPlace(uint64_t tokens, uint32_t place, uint32_t places);

}  // namespace railyard
