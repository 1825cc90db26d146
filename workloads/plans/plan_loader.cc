// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/plan_loader.h"

#include <filesystem>

#include <fmt/format.h>

#include "workloads/plans/compute_loader.h"
#include "workloads/plans/job_loader.h"
#include "workloads/plans/model_loader.h"
#include "workloads/plans/parallelism_loader.h"
#include "workloads/plans/synthesize.h"
#include "workloads/workload.pb.h"

namespace railyard {
namespace {

// Dimensions that inference plans do not have.
void CheckInference(const ProtoCursor& cursor, const Parallelism& parallelism,
                    Diagnostics& diagnostics) {
  const auto refuse = [&](const char* field, bool is_used) {
    if (!is_used) return;
    cursor.Child("parallelism")
        .Error(diagnostics, field, "inference plans are tensor parallel only (expected none)");
  };
  refuse("context", parallelism.context() > 1);
  refuse("data", parallelism.data() > 1);
  refuse("pipeline", parallelism.pipeline() > 1);
  refuse("sequence", parallelism.sequence);
}

void CheckSize(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const char* const job = std::holds_alternative<Inference>(plan.job) ? "inference" : "training";
  const uint64_t operations = OperationCount(plan);
  if (operations > kPlanOperationsMax) {
    cursor.Error(diagnostics, job,
                 fmt::format("up to {} operations of GPUs that differ (expected at most {}: fewer "
                             "tokens, micro-batches or iterations)",
                             operations, kPlanOperationsMax));
  }
}

}  // namespace

std::optional<Plan> LoadPlan(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  Plan plan;
  plan.name = cursor.Text("name", std::filesystem::path(cursor.file().path).stem().string());

  std::optional<ModelConfig> model;
  if (cursor.Has("model")) {
    model = LoadModel(cursor.Child("model"), diagnostics);
  } else {
    cursor.Missing(diagnostics, "model", "e.g. model { preset: \"llama-2-70b\" }");
  }
  if (cursor.Has("parallelism")) {
    plan.parallelism = LoadParallelism(cursor.Child("parallelism"), diagnostics);
  } else {
    cursor.Missing(diagnostics, "parallelism", "e.g. parallelism { tensor: 8 data: 4 }");
  }
  const bool parts_are_right =
      diagnostics.error_count() == errors_before && !cursor.IsDoubtful("parallelism");
  if (model) plan.model = *model;
  const bool is_training = cursor.Has("training");
  if (cursor.Has("compute")) {
    plan.compute =
        LoadCompute(cursor.Child("compute"), plan.model.precision, is_training, diagnostics);
  } else {
    cursor.Missing(diagnostics, "compute",
                   "e.g. compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                   "memory_utilisation: 0.8 }");
  }
  if (model && parts_are_right) {
    CheckParallelism(cursor.Child("parallelism"), plan.parallelism, *model, diagnostics);
  }
  if (is_training) {
    plan.job = LoadTraining(cursor.Child("training"), plan.model, plan.parallelism, diagnostics);
  } else if (cursor.Has("inference")) {
    plan.job = LoadInference(cursor.Child("inference"), plan.model, diagnostics);
    if (parts_are_right) CheckInference(cursor, plan.parallelism, diagnostics);
  } else {
    cursor.Missing(diagnostics, "training", "training or inference");
  }
  if (diagnostics.error_count() > errors_before || cursor.IsDoubtfulSelf()) return std::nullopt;
  CheckSize(cursor, plan, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return plan;
}

std::optional<Plan> LoadPlanFile(const std::string& path, const std::vector<std::string>& sets,
                                 Diagnostics& diagnostics) {
  const auto file = LoadTextProto(path, protos::Plan(), sets, diagnostics);
  if (!file) return std::nullopt;
  return LoadPlan(ProtoCursor(*file), diagnostics);
}

}  // namespace railyard
