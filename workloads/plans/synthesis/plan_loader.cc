// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/synthesis/plan_loader.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "traces/trace/trace_check.h"
#include "workloads/experts/expert_kernels.h"
#include "workloads/plans/model/compute_loader.h"
#include "workloads/plans/model/model_loader.h"
#include "workloads/plans/parallelism/expert_routing_loader.h"
#include "workloads/plans/parallelism/expert_traffic.h"
#include "workloads/plans/parallelism/parallelism_loader.h"
#include "workloads/plans/plan/job_loader.h"
#include "workloads/plans/synthesis/plan_time_check.h"
#include "workloads/plans/synthesis/synthesize.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {
namespace {

// Experts are drawn for each token and layer; more would take minutes.
constexpr double kRoutedTokensMax = 1e8;

// Dimensions that inference plans do not have.
void CheckInference(const ProtoCursor& cursor, const Parallelism& parallelism,
                    Diagnostics& diagnostics) {
  const ProtoCursor parts = cursor.Child("parallelism");
  if (parallelism.context() > 1) {
    parts.Error(diagnostics, "context", "inference plans are not context parallel (expected none)");
  }
  if (parallelism.sequence && parallelism.expert == 1) {
    parts.Error(
        diagnostics, "sequence",
        "inference divides tokens where experts are divided only (expected none, or expert: "
        "2 or more)");
  }
}

// Refuses fields that only plans of transformers have.
void CheckLayered(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* message, std::initializer_list<const char*> fields) {
    if (!cursor.Has(message)) return;
    const ProtoCursor child = cursor.Child(message);
    for (const char* const field : fields) {
      if (!child.Has(field)) continue;
      child.Error(diagnostics, field,
                  "the model is no transformer (expected none: it is data parallel only)");
    }
  };
  refuse("parallelism", {"tensor", "pipeline", "context", "sequence", "expert"});
  refuse("compute", {"given"});
  if (cursor.Has("parallelism") && cursor.Child("parallelism").Size("order") > 0) {
    cursor.Child("parallelism")
        .Error(diagnostics, "order", "there is one dimension (expected none)", 0);
  }
  for (const char* const field : {"inference", "expert_routing"}) {
    if (cursor.Has(field)) {
      cursor.Error(diagnostics, field, "the model is no transformer (expected training only)");
    }
  }
}

// Tokens that pass a layer with experts, over all layers.
double RoutedTokenCount(const Plan& plan) {
  double tokens = 0;
  if (const auto* const training = std::get_if<Training>(&plan.job)) {
    tokens = static_cast<double>(training->micro_batch) * training->sequence *
             plan.parallelism.data() * training->micro_batches * training->iterations;
  } else {
    for (const Request& request : std::get<Inference>(plan.job).requests) {
      tokens += static_cast<double>(request.prompt_tokens) + request.output_tokens;
    }
  }
  return tokens * (plan.model.layers - plan.model.experts->dense_layers);
}

// Returns the most tokens that a rank may send to another in one exchange. Low-latency kernels send
// a token once for each of its experts there.
double MostTokens(const Plan& plan) {
  const Experts& experts = *plan.model.experts;
  const double copies =
      experts.kernel == ExpertKernel::kDeepEpLowLatency
          ? std::min(experts.per_token, std::max(1U, experts.count / plan.parallelism.expert))
          : 1;
  if (std::holds_alternative<Training>(plan.job)) {
    return copies * static_cast<double>(plan.MicroBatchTokens());
  }
  const auto& inference = std::get<Inference>(plan.job);
  double longest = 0;
  for (const Request& request : inference.requests) {
    longest = std::max(longest, static_cast<double>(request.prompt_tokens));
  }
  return copies * longest * inference.batch;
}

// Checks that every iteration has captured data, and the limits of what is drawn.
void CheckRouting(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const auto* const training = std::get_if<Training>(&plan.job);
  const uint32_t iterations = training != nullptr ? training->iterations : 1;
  const size_t captured = plan.routing.captured.size();
  if (captured > 1 && training == nullptr) {
    cursor.Child("expert_routing")
        .Error(diagnostics, "captured",
               fmt::format("{} iterations (expected one: inference has none)", captured));
  } else if (captured > 1 && captured < iterations) {
    cursor.Child("expert_routing")
        .Error(diagnostics, "captured",
               fmt::format("{} iterations of {} (expected one for all, or {} or more)", captured,
                           iterations, iterations));
  }
  const uint32_t groups_of = plan.routing.hierarchical_groups_of;
  const uint32_t ranks = plan.parallelism.expert;
  if (groups_of > 0 && (groups_of >= ranks || ranks % groups_of != 0)) {
    uint32_t nearest = 1;  // that would do
    for (uint32_t divisor = 2; divisor < ranks; ++divisor) {
      if (ranks % divisor == 0 && divisor <= groups_of) nearest = divisor;
    }
    cursor.Child("expert_routing")
        .Error(diagnostics, "hierarchical_groups_of",
               fmt::format("{} does not divide the {} ranks of an expert-parallel group into "
                           "several groups (expected {})",
                           groups_of, ranks,
                           nearest > 1 ? fmt::format("e.g. {}", nearest) : "it absent"));
  }
  const double tokens = RoutedTokenCount(plan);
  if (tokens > kRoutedTokensMax) {
    cursor.Error(diagnostics, training != nullptr ? "training" : "inference",
                 fmt::format("{:.3g} tokens to route, over all layers and iterations (expected at "
                             "most {:.3g}: fewer samples, layers or iterations)",
                             tokens, kRoutedTokensMax));
  }
}

// Checks what a kernel of experts can do.
void CheckKernel(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const Experts& experts = *plan.model.experts;
  const uint32_t ranks = plan.parallelism.expert;
  const std::string name(ExpertKernelName(experts.kernel));
  const auto refuse = [&](std::string what) {
    cursor.Child("model").Child("experts").Error(diagnostics, "kernel", std::move(what));
  };
  if (ranks == 1) {
    refuse(name + " moves tokens to whole experts (expected parallelism.expert: 2 or more)");
    return;
  }
  const std::span<const uint32_t> known = DeepEpRanks();
  const uint32_t server_ranks = ServerRanksOf(plan);
  const uint32_t sms = experts.kernel_sms > 0 ? experts.kernel_sms : kHybridEpSms;
  if (experts.kernel == ExpertKernel::kDeepEp && std::ranges::find(known, ranks) == known.end()) {
    refuse(fmt::format("{} has no configuration for {} ranks (expected parallelism.expert: {})",
                       name, ranks, fmt::join(known, ", ")));
  } else if (experts.kernel == ExpertKernel::kHybridEp && ranks % server_ranks != 0) {
    refuse(
        fmt::format("{} ranks are no whole servers of {} (expected a multiple, or another "
                    "model.experts.nvlink_ranks)",
                    ranks, server_ranks));
  } else if (experts.kernel == ExpertKernel::kHybridEp &&
             uint64_t{sms} * (ranks / server_ranks) > kExpertChannelsMax) {
    refuse(fmt::format("{} SMs and {} servers are too many (expected at most {} of their product)",
                       sms, ranks / server_ranks, kExpertChannelsMax));
  }
  const ProtoCursor routing = cursor.Child("expert_routing");
  for (const char* const field : {"capacity_factor", "hierarchical_groups_of", "loss_tolerance"}) {
    if (!cursor.Has("expert_routing") || !routing.Has(field)) continue;
    routing.Error(diagnostics, field,
                  fmt::format("{} does no such thing (expected none, or kernel: NCCL)", name));
  }
  const double tokens = MostTokens(plan);
  if (tokens > kExpertCallTokensMax) {
    cursor.Error(diagnostics,
                 std::holds_alternative<Inference>(plan.job) ? "inference" : "training",
                 fmt::format("{} exchanges {} tokens at once (expected at most {})", name, tokens,
                             kExpertCallTokensMax));
  }
}

void CheckSize(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const char* const job = std::holds_alternative<Inference>(plan.job) ? "inference" : "training";
  const uint64_t operations = OperationCount(plan);
  if (plan.parallelism.expert > 1) CheckRouting(cursor, plan, diagnostics);
  if (plan.model.experts && plan.model.experts->kernel != ExpertKernel::kNone) {
    CheckKernel(cursor, plan, diagnostics);
  }
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
  if (cursor.Has("model")) plan.layered = LoadLayeredModel(cursor.Child("model"), diagnostics);
  if (plan.layered) {
    CheckLayered(cursor, diagnostics);
  } else if (cursor.Has("model")) {
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
    plan.compute = LoadCompute(cursor.Child("compute"), plan.precision(), is_training, diagnostics);
  } else {
    cursor.Missing(diagnostics, "compute",
                   "e.g. compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                   "memory_utilisation: 0.8 }");
  }
  if (model && parts_are_right) {
    CheckParallelism(cursor.Child("parallelism"), plan.parallelism, *model, diagnostics);
  }
  if (cursor.Has("expert_routing")) {
    if (parts_are_right && model && plan.parallelism.expert == 1) {
      cursor.Error(diagnostics, "expert_routing",
                   "experts are divided by tensor parallelism, whatever the tokens "
                   "(expected parallelism.expert: 2 or more)");
    } else if (model && model->experts) {
      plan.routing = LoadRouting(cursor.Child("expert_routing"), *model, is_training, diagnostics);
    }
  }
  if (is_training) {
    plan.job = LoadTraining(cursor.Child("training"), plan, diagnostics);
  } else if (cursor.Has("inference") && !plan.layered) {
    plan.job = LoadInference(cursor.Child("inference"), plan, diagnostics);
    if (parts_are_right) CheckInference(cursor, plan.parallelism, diagnostics);
  } else {
    cursor.Missing(diagnostics, "training", "training or inference");
  }
  if (diagnostics.error_count() > errors_before || cursor.IsDoubtfulSelf()) return std::nullopt;
  CheckPassTime(cursor, plan, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  CheckSize(cursor, plan, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  CheckJobTime(cursor, plan, diagnostics);
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return plan;
}

std::optional<Plan> LoadPlanFile(const std::string& path, const std::vector<std::string>& sets,
                                 Diagnostics& diagnostics, const std::string& set_prefix) {
  const auto file =
      LoadTextProto(path, protos::Plan(), sets, diagnostics, {.fields = {}, .prefix = set_prefix});
  if (!file) return std::nullopt;
  return LoadPlan(ProtoCursor(*file), diagnostics);
}

}  // namespace railyard
