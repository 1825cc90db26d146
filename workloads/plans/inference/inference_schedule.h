// SPDX-License-Identifier: GPL-2.0-only
// Assigns requests to steps. Requests are dealt out to data-parallel replicas and, in each, to as
// many slots as the pipeline has stages; the slots' steps pass through the pipeline one after the
// other. A slot works on up to `batch` requests at a time: all together from the prompts to the end
// of the longest answer or, with continuous batching (Yu et al.: "Orca", OSDI 2022), a request
// joins at the first step after it has arrived and leaves with its last token. The arrivals during
// a step depend on its duration, which is known only when the job runs; here a step takes the time
// of its computation on all stages, and communication takes no time.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Describes one pass through the model.
struct InferenceStep {
  uint64_t prompt_tokens = 0;    // of joining requests
  double prompt_pairs = 0;       // (query, key) pairs of prompt_tokens
  uint64_t decoding = 0;         // sequences that get one more token
  uint64_t cached_tokens = 0;    // to which these attend, themselves included
  uint32_t sequences = 0;        // that get a token, joining ones included
  std::vector<uint32_t> joined;  // requests

  uint64_t tokens() const { return prompt_tokens + decoding; }
};

// Computes the time of a step on one GPU of a tensor group, by part.
class InferenceCost {
 public:
  struct PartTimes {
    int64_t attention_ps = 0;
    int64_t dense_ps = 0;    // the feed-forward network of layers without experts
    int64_t experts_ps = 0;  // of layers with experts; if parallel, only what is not routed
    int64_t embedding_ps = 0;
    int64_t output_ps = 0;
  };

  // `plan` must outlive this. With `expert_parallel`, the time of routed experts is requested
  // separately, by load.
  InferenceCost(const Plan& plan, uint32_t tensor, bool expert_parallel);

  PartTimes TimesOf(const InferenceStep& step) const;
  // Returns the time of one GPU's routed experts, `active` of which receive `tokens` together. A
  // time that the plan gives applies to `mean` tokens, the number that the GPU would receive from
  // an even gate.
  int64_t RoutedPs(uint64_t tokens, uint32_t active, double mean) const;
  // Returns the time of all layers, embedding and output layer, with the experts of an even gate.
  int64_t StepPs(const InferenceStep& step) const;

 private:
  int64_t TimePs(const Work& work) const;

  const Plan& plan_;
  const uint32_t tensor_;
  const bool expert_parallel_;
  const LayerWork dense_;  // of the first layer
  const LayerWork last_;   // of the last layer, which has experts if any layer has
};

struct InferenceSchedule {
  // The steps by [replica][slot], in order.
  std::vector<std::vector<std::vector<InferenceStep>>> slots;
  // Only with disaggregation: the prefill group's steps, and the replica of each request.
  std::vector<InferenceStep> prefills;
  std::vector<uint32_t> replica_of;
};

// Returns the schedule. Precondition: the plan's job is an Inference.
InferenceSchedule ScheduleInference(const Plan& plan);
// Returns an upper bound on the number of steps of all slots.
uint64_t InferenceStepsBound(const Inference& inference);

}  // namespace railyard
