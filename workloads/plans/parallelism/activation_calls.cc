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

void ActivationCalls::GatherInput() { GatherTokens(model_.hidden); }

void ActivationCalls::ReduceOutput() { ReduceTokens(model_.hidden); }

void ActivationCalls::GatherAttentionInput() {
  for (const uint64_t width : AttentionWidths()) GatherTokens(width);
}

void ActivationCalls::GatherAttentionInputAgain() {
  std::vector<uint64_t> widths = AttentionWidths();
  if (model_.latent_attention) widths.pop_back();
  for (const uint64_t width : widths) GatherTokens(width);
}

void ActivationCalls::ReduceAttentionInput() {
  for (const uint64_t width : AttentionWidths()) ReduceTokens(width);
}

std::vector<uint64_t> ActivationCalls::AttentionWidths() const {
  if (!model_.latent_attention) return {model_.hidden};
  const LatentAttention& latent = *model_.latent_attention;
  return {latent.query_rank > 0 ? latent.query_rank : model_.hidden, latent.kv_rank,
          latent.rope_head_dim};
}

void ActivationCalls::GatherTokens(uint64_t width) {
  if (!parts_.sequence) return;
  OnTensorGroup(CollectiveKind::kAllGather, ElementsOf(width), activation_);
}

void ActivationCalls::ReduceTokens(uint64_t width) {
  OnTensorGroup(parts_.sequence ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                ElementsOf(width), activation_);
}

void ActivationCalls::ReduceLoss() {
  // Largest logit, the label's logit, sum of exponentials.
  for (int i = 0; i < 3; ++i) {
    OnTensorGroup(CollectiveKind::kAllReduce, tokens_, Datatype::kFloat32);
  }
}

void ActivationCalls::SumWholeGradients(uint64_t elements) {
  if (elements == 0) return;
  OnTensorGroup(CollectiveKind::kAllReduce, elements, gradient_);
}

uint64_t ActivationCalls::BoundaryElements() const { return ElementsOf(model_.hidden); }

uint64_t ActivationCalls::ElementsOf(uint64_t width) const {
  return tokens_ * width / (parts_.sequence ? parts_.tensor() : 1);
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
  if (model_.latent_attention) {
    // The keys and values of the rank's heads, which attention takes.
    const LatentAttention& latent = *model_.latent_attention;
    const uint64_t per_head =
        uint64_t{latent.nope_head_dim} + latent.rope_head_dim + latent.value_head_dim;
    return tokens_ * (model_.heads / parts_.tensor()) * per_head;
  }
  return tokens_ * CacheElementsPerToken(model_) / std::min(parts_.tensor(), model_.kv_heads);
}

}  // namespace railyard
