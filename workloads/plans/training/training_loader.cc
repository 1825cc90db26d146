// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"
#include "workloads/plans/plan/job_loader.h"
#include "workloads/plans/plan_reader.h"
#include "workloads/plans/training/fine_tuning_loader.h"

namespace railyard {
namespace {

constexpr uint32_t kSequenceMax = 16'777'216;
constexpr uint32_t kMicroBatchMax = 65'536;
constexpr uint32_t kIterationsMax = 1'000'000;

PipelineScheduleKind ScheduleOf(const protos::Training& message) {
  switch (message.schedule()) {
    case protos::Training::INTERLEAVED:
      return PipelineScheduleKind::kInterleaved;
    case protos::Training::ZERO_BUBBLE:
      return PipelineScheduleKind::kZeroBubble;
    default:
      return PipelineScheduleKind::kOneFOneB;
  }
}

uint32_t ZeroOf(const protos::Training& message) {
  switch (message.zero()) {
    case protos::Training::ZERO_1:
      return 1;
    case protos::Training::ZERO_2:
      return 2;
    case protos::Training::ZERO_3:
      return 3;
    default:
      return 0;
  }
}

void LoadPipeline(const PlanReader& reader, const ModelConfig& model,
                  const Parallelism& parallelism, Training& training) {
  const uint32_t stages = parallelism.pipeline();
  training.schedule = ScheduleOf(reader.cursor().As<protos::Training>());
  if (reader.Has("schedule") && stages == 1) {
    reader.Error("schedule", "there is one stage (expected parallelism.pipeline: 2 or more)");
  }
  if (training.schedule != PipelineScheduleKind::kInterleaved) {
    if (reader.Has("virtual_stages")) {
      reader.Error("virtual_stages", "means nothing here (expected schedule: INTERLEAVED)");
    }
    return;
  }
  if (!reader.Has("virtual_stages")) {
    reader.Missing("virtual_stages", "2 or more");
    return;
  }
  reader.Number("virtual_stages", 2, 4096, training.virtual_stages);
  if (model.layers > 0 && uint64_t{stages} * training.virtual_stages > model.layers) {
    reader.Error("virtual_stages",
                 fmt::format("{} stages of {} parts for {} layers (expected at most {} parts)",
                             stages, training.virtual_stages, model.layers, model.layers / stages));
  }
  if (training.micro_batches > 0 && training.micro_batches % stages != 0) {
    const uint32_t below = training.micro_batches / stages * stages;
    reader.Error("micro_batches",
                 fmt::format("{} are not a multiple of the {} stages, as INTERLEAVED wants "
                             "(expected {}{})",
                             training.micro_batches, stages,
                             below > 0 ? fmt::format("{} or ", below) : "", below + stages));
  }
}

void LoadData(const PlanReader& reader, const Parallelism& parallelism, Training& training) {
  const auto& message = reader.cursor().As<protos::Training>();
  training.zero = ZeroOf(message);
  training.gradient_bucket_bytes = reader.cursor().Bytes(reader.diagnostics(), "gradient_bucket",
                                                         training.gradient_bucket_bytes);
  reader.Flag("overlap_gradients", training.overlap_gradients);
  reader.Flag("ddp_broadcasts", training.ddp_broadcasts);
  if (parallelism.data() * parallelism.context() == 1) {
    for (const char* const field :
         {"zero", "gradient_bucket", "overlap_gradients", "ddp_broadcasts"}) {
      if (reader.Has(field)) {
        reader.Error(field, "there is one replica (expected parallelism.data: 2 or more)");
      }
    }
    return;
  }
  if (training.zero == 3 && reader.Has("gradient_bucket")) {
    reader.Error("gradient_bucket",
                 "ZERO_3 reduces layer by layer (expected none, or ZERO_0 to ZERO_2)");
  }
  if (training.gradient_bucket_bytes == 0) {
    reader.Error("gradient_bucket", "is empty (expected e.g. \"25MiB\")");
  }
}

// Without expert parallelism and ZeRO, replicas hold the same gradients.
void LoadClipping(const PlanReader& reader, const Parallelism& parallelism, Training& training) {
  reader.Flag("gradient_clipping", training.gradient_clipping);
  if (training.gradient_clipping && parallelism.RankCount() == 1) {
    reader.Error("gradient_clipping", "there is one rank, which has all gradients (expected none)");
  } else if (training.gradient_clipping && training.zero == 0 &&
             parallelism.tensor() * parallelism.pipeline() == 1 && parallelism.expert == 1) {
    reader.Error("gradient_clipping",
                 "every rank has all gradients (expected none, or parallelism.tensor or "
                 "parallelism.pipeline: 2 or more, or zero: ZERO_1 to ZERO_3)");
  }
}

void LoadLogInterval(const PlanReader& reader, const Parallelism& parallelism, Training& training) {
  reader.Number("log_interval", 1, kIterationsMax, training.log_interval);
  if (training.log_interval > 0 && parallelism.RankCount() == 1) {
    reader.Error("log_interval", "there is one rank, which waits for nobody (expected none)");
  }
}

void CheckTokens(const PlanReader& reader, const ModelConfig& model, const Parallelism& parallelism,
                 const Training& training) {
  const uint32_t divided_by =
      parallelism.context() * (parallelism.sequence ? parallelism.tensor() : 1);
  if (training.sequence % divided_by != 0) {
    reader.Error("sequence", fmt::format("{} tokens are not divided by the {} parts of context and "
                                         "sequence parallelism (expected a multiple, e.g. {})",
                                         training.sequence, divided_by,
                                         (training.sequence / divided_by + 1) * divided_by));
  }
  const double bytes = static_cast<double>(training.micro_batch) * training.sequence *
                       model.hidden * PrecisionBytes(model.precision);
  if (bytes > static_cast<double>(kOperationBytesMax) / 1024) {
    reader.Error("micro_batch",
                 fmt::format("its activations are of {:.3g} bytes (expected at most {}: fewer "
                             "samples or a shorter sequence)",
                             bytes, FormatBytes(kOperationBytesMax / 1024)));
  }
}

}  // namespace

Training LoadTraining(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const PlanReader reader(cursor, diagnostics);
  Training training;
  if (plan.layered) {
    for (const char* const field : {"sequence", "schedule", "virtual_stages", "recompute",
                                    "gradient_clipping", "log_interval"}) {
      if (reader.Has(field)) {
        reader.Error(field, "the model is no transformer (expected none)");
      }
    }
  } else {
    reader.Required("sequence", 1, kSequenceMax, "tokens, e.g. 4096", training.sequence);
  }
  reader.Required("micro_batch", 1, kMicroBatchMax, "samples, e.g. 1", training.micro_batch);
  reader.Required("micro_batches", 1, kMicroBatchMax, "e.g. 16", training.micro_batches);
  reader.Number("iterations", 1, kIterationsMax, training.iterations);
  training.gradient_precision = plan.precision();
  reader.ReadPrecision("gradient_precision", training.gradient_precision);
  const auto& message = cursor.As<protos::Training>();
  training.recompute =
      message.recompute() == protos::Training::FULL ? Recompute::kFull : Recompute::kNone;
  if (!plan.layered) LoadPipeline(reader, plan.model, plan.parallelism, training);
  LoadData(reader, plan.parallelism, training);
  training.fine_tuning = LoadFineTuning(reader, plan);
  if (!plan.layered) {
    LoadClipping(reader, plan.parallelism, training);
    LoadLogInterval(reader, plan.parallelism, training);
  }
  if (plan.layered && training.zero == 3) {
    reader.Error("zero",
                 "layers of this model are not gathered one by one (expected ZERO_0 to ZERO_2)");
  }
  if (diagnostics.error_count() == errors_before && !plan.layered) {
    CheckTokens(reader, plan.model, plan.parallelism, training);
  }
  return training;
}

}  // namespace railyard
