// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesis/plan_time_check.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "workloads/plans/inference/inference_schedule.h"
#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/training/layered_plan.h"
#include "workloads/plans/training/optimizer.h"
#include "workloads/plans/training/stage_weights.h"
#include "workloads/plans/training/training_times.h"

namespace railyard {
namespace {

// The time of one forward pass over the model on one GPU: its longest part, and the sum of all
// parts.
struct PassTime {
  int64_t longest_ps = 0;
  double all_ps = 0;

  void Add(int64_t part_ps, double times = 1) {
    longest_ps = std::max(longest_ps, part_ps);
    all_ps += static_cast<double>(part_ps) * times;
  }
};

PassTime TrainingPassTime(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const TrainingTimes times(plan);
  const uint32_t layers_of_stage = plan.model.layers / plan.parallelism.pipeline();
  const double layers = 1.0 + layers_of_stage;
  PassTime pass;
  pass.Add(times.attention_ps(), layers);
  pass.Add(std::max(times.FeedForwardPs(0), times.FeedForwardPs(plan.model.layers - 1)), layers);
  pass.Add(times.embedding_ps());
  pass.Add(times.output_ps());
  // Once in as many passes as there are micro-batches, at least.
  const StageWeights weights(plan, 0);
  pass.Add(times.OptimizerPs(weights), 1.0 / training.micro_batches);
  return pass;
}

PassTime LayeredPassTime(const Plan& plan) {
  const auto& training = std::get<Training>(plan.job);
  const LayeredModel& model = *plan.layered;
  PassTime pass;
  pass.Add(ComputeTimePs(plan.compute, model.precision,
                         {.flops = ForwardFlops(model) * training.micro_batch,
                          .memory_bytes = static_cast<double>(DenseParameterCount(model)) *
                                          PrecisionBytes(model.precision)}));
  pass.Add(ComputeTimePs(plan.compute, model.precision,
                         OptimizerWork(static_cast<double>(DenseParameterCount(model)),
                                       training.gradient_precision, model.precision)),
           1.0 / training.micro_batches);
  if (!model.tables) return pass;
  // The update takes twice as long as the look-up, as a backward pass does.
  const double look_up_bytes = LookUpBytes(plan, 0);
  const auto time_ps = [&](double memory_bytes) {
    return ComputeTimePs(plan.compute, model.precision, {.flops = 0, .memory_bytes = memory_bytes});
  };
  pass.Add(time_ps(look_up_bytes));
  pass.Add(time_ps(2 * look_up_bytes), 0);
  return pass;
}

// The longest step has as many prompts as are worked on at a time.
PassTime InferencePassTime(const Plan& plan) {
  const auto& inference = std::get<Inference>(plan.job);
  uint64_t prompt_tokens = 0;
  uint64_t all_tokens = 0;
  for (const Request& request : inference.requests) {
    prompt_tokens = std::max<uint64_t>(prompt_tokens, request.prompt_tokens);
    all_tokens =
        std::max<uint64_t>(all_tokens, uint64_t{request.prompt_tokens} + request.output_tokens);
  }
  PassTime pass;
  if (plan.compute.given) {
    const GivenTimes& given = *plan.compute.given;
    pass.Add(given.attention_ps + given.feed_forward_ps, plan.model.layers);
    pass.Add(given.embedding_ps + given.output_layer_ps);
    return pass;
  }
  const auto time_ps = [&](const Work& work) {
    return ComputeTimePs(plan.compute, plan.model.precision, work);
  };
  const uint64_t tokens = prompt_tokens * inference.batch;
  const LayerWork layer(plan.model, plan.model.layers - 1, plan.parallelism.tensor(),
                        plan.parallelism.sequence);
  pass.Add(time_ps(layer.Attention(
               {.tokens = tokens,
                .attended_pairs = AttendedPairs(plan.model, inference.batch, prompt_tokens),
                .cached_tokens = all_tokens * inference.batch})),
           plan.model.layers);
  pass.Add(time_ps(layer.FeedForward(tokens)), plan.model.layers);
  pass.Add(time_ps(EmbeddingWork(plan.model, tokens)));
  pass.Add(time_ps(OutputWork(plan.model, inference.batch, plan.parallelism.tensor())));
  return pass;
}

PassTime PassTimeOf(const Plan& plan) {
  if (std::holds_alternative<Inference>(plan.job)) return InferencePassTime(plan);
  return plan.layered ? LayeredPassTime(plan) : TrainingPassTime(plan);
}

}  // namespace

void CheckPassTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  if (plan.compute.given) return;  // times are limited each
  const PassTime pass = PassTimeOf(plan);
  if (pass.longest_ps < kComputePsMax && pass.all_ps < static_cast<double>(kPlanPsMax)) return;
  cursor.Child("compute").Error(
      diagnostics, "utilisation",
      fmt::format("a part of the model takes a GPU {} or more (expected a higher utilisation or "
                  "memory_utilisation, or fewer tokens)",
                  FormatDuration(kComputePsMax)));
}

void CheckJobTime(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const auto* const training = std::get_if<Training>(&plan.job);
  double passes = 0;
  if (training != nullptr) {
    const double backward = plan.compute.given ? plan.compute.given->backward_ratio : 2.0;
    passes = (2 + backward) * training->micro_batches * training->iterations;
  } else {
    passes = static_cast<double>(InferenceStepsBound(std::get<Inference>(plan.job)));
  }
  const double job_ps = PassTimeOf(plan).all_ps * passes;
  if (job_ps < static_cast<double>(kPlanPsMax)) return;
  cursor.Child(training != nullptr ? "training" : "inference")
      .Error(
          diagnostics, training != nullptr ? "iterations" : "output_tokens",
          fmt::format("a GPU may compute for {:.3g} days (expected at most {:.3g}: fewer of them, "
                      "or less to compute)",
                      job_ps / 1e12 / 86'400, static_cast<double>(kPlanPsMax) / 1e12 / 86'400));
}

}  // namespace railyard
