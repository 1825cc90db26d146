// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/training_times.h"

#include <cmath>

#include "workloads/plans/training/optimizer.h"

namespace railyard {

TrainingTimes::TrainingTimes(const Plan& plan)
    : plan_(plan),
      last_layer_(plan.model, plan.model.layers - 1, plan.parallelism.tensor(),
                  plan.parallelism.sequence) {
  const ModelConfig& model = plan.model;
  if (plan.compute.given) {
    const GivenTimes& given = *plan.compute.given;
    attention_ps_ = given.attention_ps;
    feed_forward_ps_.fill(given.feed_forward_ps);
    embedding_ps_ = given.embedding_ps;
    output_ps_ = given.output_layer_ps;
    backward_ratio_ = given.backward_ratio;
    return;
  }
  const auto& training = std::get<Training>(plan.job);
  const uint32_t tensor = plan.parallelism.tensor();
  const uint64_t tokens = plan.MicroBatchTokens();
  const LayerWork first_layer(model, 0, tensor, plan.parallelism.sequence);
  attention_ps_ = TimeOf(last_layer_.Attention(
      {.tokens = tokens,
       .attended_pairs = AttendedPairs(model, training.micro_batch, training.sequence) /
                         plan.parallelism.context()}));
  feed_forward_ps_ = {TimeOf(first_layer.FeedForward(tokens)),
                      TimeOf(last_layer_.FeedForward(tokens))};
  if (training.fine_tuning.lora) {
    std::array<Work, 2> work{};
    for (const Weight& weight : AdapterWeights(model, *training.fine_tuning.lora)) {
      Work& of_part = work[weight.use == WeightUse::kAttention ? 0 : 1];
      const double elements = static_cast<double>(weight.elements) / weight.PartsIn(tensor);
      of_part.flops += 2 * elements * static_cast<double>(tokens);
      of_part.memory_bytes += elements * PrecisionBytes(model.precision);
    }
    for (size_t part = 0; part < work.size(); ++part) {
      if (work[part].flops > 0) adapter_ps_[part] = TimeOf(work[part]);
    }
  }
  embedding_ps_ = TimeOf(EmbeddingWork(model, tokens));
  output_ps_ = TimeOf(OutputWork(model, tokens, tensor));
}

int64_t TrainingTimes::TimeOf(const Work& work) const {
  return ComputeTimePs(plan_.compute, plan_.model.precision, work);
}

int64_t TrainingTimes::SharedPs() const {
  if (plan_.compute.given) return 0;
  return TimeOf(last_layer_.SharedFeedForward(plan_.MicroBatchTokens()));
}

int64_t TrainingTimes::RoutedPs(const ExpertExchange& exchange, uint32_t place) const {
  const uint64_t received = exchange.ReceivedBy(place);
  if (plan_.compute.given) {
    const uint64_t tokens = plan_.MicroBatchTokens() / plan_.parallelism.tensor();
    const auto mean = static_cast<double>(tokens * plan_.model.experts->per_token);
    return std::llround(static_cast<double>(plan_.compute.given->feed_forward_ps) *
                        static_cast<double>(received) / mean);
  }
  return TimeOf(last_layer_.RoutedFeedForward(received, exchange.ActiveOn(place)));
}

int64_t TrainingTimes::AdapterPs(uint32_t layer, WeightUse use) const {
  if (!std::get<Training>(plan_.job).fine_tuning.HasAdapters(layer)) return 0;
  return adapter_ps_[use == WeightUse::kAttention ? 0 : 1];
}

int64_t TrainingTimes::GradientPs(int64_t forward_ps) const {
  return std::llround(static_cast<double>(forward_ps) * backward_ratio_ / 2);
}

int64_t TrainingTimes::OptimizerPs(const StageWeights& weights) const {
  if (weights.trained_elements() + weights.trained_expert_elements() == 0) return 0;
  if (plan_.compute.given) return plan_.compute.given->optimizer_ps;
  const auto& training = std::get<Training>(plan_.job);
  const Parallelism& parts = plan_.parallelism;
  const double dense_ranks = training.zero > 0 ? parts.data() * parts.context() : 1;
  const double expert_ranks = training.zero > 0 ? parts.ExpertGroups() : 1;
  const double elements = static_cast<double>(weights.trained_elements()) / dense_ranks +
                          static_cast<double>(weights.trained_expert_elements()) / expert_ranks;
  return TimeOf(OptimizerWork(elements, training.gradient_precision, plan_.model.precision));
}

// Megatron-LM's zero_grad_buffer; with ZeRO 2 and 3 no gradients are kept.
int64_t TrainingTimes::ZeroGradientsPs(const StageWeights& weights) const {
  const auto& training = std::get<Training>(plan_.job);
  if (plan_.compute.given || training.zero >= 2) return 0;
  const auto elements =
      static_cast<double>(weights.trained_elements() + weights.trained_expert_elements());
  return TimeOf(
      {.flops = 0, .memory_bytes = elements * PrecisionBytes(training.gradient_precision)});
}

}  // namespace railyard
