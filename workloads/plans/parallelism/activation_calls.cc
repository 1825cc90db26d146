// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/activation_calls.h"

#include <algorithm>

#include "workloads/plans/parallelism/stage_group.h"

namespace railyard {

ActivationCalls::ActivationCalls(const Plan& plan, ProgramWriter& writer)
    : model_(plan.model),
      parts_(plan.parallelism),
      tokens_(plan.MicroBatchTokens()),
      activation_(DatatypeOf(plan.model.precision)),
      gradient_(DatatypeOf(std::get<Training>(plan.job).gradient_precision)),
      writer_(writer) {}

void ActivationCalls::GatherInput() {
  if (!parts_.sequence) return;
  OnTensorGroup(CollectiveKind::kAllGather, BoundaryElements(), activation_);
}

void ActivationCalls::ReduceOutput() {
  OnTensorGroup(parts_.sequence ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                BoundaryElements(), activation_);
}

void ActivationCalls::ReduceLoss() {
  // Largest logit, the label's logit, sum of exponentials.
  for (int i = 0; i < 3; ++i) {
    OnTensorGroup(CollectiveKind::kAllReduce, tokens_, Datatype::kFloat32);
  }
}

void ActivationCalls::ReduceWholeGradients(uint64_t elements) {
  if (!parts_.sequence || elements == 0) return;
  OnTensorGroup(CollectiveKind::kAllReduce, elements, gradient_);
}

uint64_t ActivationCalls::BoundaryElements() const {
  return tokens_ * model_.hidden / (parts_.sequence ? parts_.tensor() : 1);
}

void ActivationCalls::OnTensorGroup(CollectiveKind kind, uint64_t count, Datatype datatype) {
  if (parts_.tensor() == 1) return;
  writer_.Collective({.kind = kind,
                      .communicator = static_cast<uint32_t>(StageGroup::kTensor),
                      .count = count,
                      .datatype = datatype});
}

void ActivationCalls::GatherContext() { OnContextGroup(CollectiveKind::kAllGather); }

void ActivationCalls::ReduceContext() { OnContextGroup(CollectiveKind::kReduceScatter); }

void ActivationCalls::OnContextGroup(CollectiveKind kind) {
  if (parts_.context() == 1) return;
  writer_.Collective({.kind = kind,
                      .communicator = static_cast<uint32_t>(StageGroup::kContext),
                      .count = KeyValueElements(),
                      .datatype = activation_});
}

uint64_t ActivationCalls::KeyValueElements() const {
  const uint64_t heads_share =
      model_.latent_attention ? 1 : std::min(parts_.tensor(), model_.kv_heads);
  return tokens_ * CacheElementsPerToken(model_) / heads_share;
}

}  // namespace railyard
