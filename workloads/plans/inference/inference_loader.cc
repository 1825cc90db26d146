// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"
#include "workloads/plans/inference/requests.h"
#include "workloads/plans/parallelism/parallelism_loader.h"
#include "workloads/plans/plan/job_loader.h"
#include "workloads/plans/plan_reader.h"

namespace railyard {
namespace {

constexpr double kRateMax = 1e9;

// Loads equal queries; none after an error.
void LoadQueries(const PlanReader& reader, Inference& inference, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  uint32_t queries = 0;
  Request request;
  reader.Required("queries", 1, kRequestsMax, "e.g. 8", queries);
  reader.Required("prompt_tokens", 1, kRequestTokensMax, "e.g. 512", request.prompt_tokens);
  reader.Required("output_tokens", 1, kRequestTokensMax, "e.g. 256", request.output_tokens);
  if (!inference.continuous && queries > 0 && queries % inference.batch != 0) {
    reader.Error("batch",
                 fmt::format("{} does not divide the {} queries (expected {})", inference.batch,
                             queries, NearestDivisors(queries, inference.batch)));
  }
  if (diagnostics.error_count() > errors_before) return;
  inference.requests.assign(queries, request);
}

void LoadArrivals(const PlanReader& reader, Inference& inference, Diagnostics& diagnostics) {
  const PlanReader arrivals(reader.cursor().Child("arrivals"), diagnostics);
  if (arrivals.Has("requests")) {
    for (const char* const field : {"queries", "prompt_tokens", "output_tokens"}) {
      if (reader.Has(field)) {
        reader.Error(field, "means nothing beside arrivals.requests (expected one of them)");
      }
    }
    for (const char* const field : {"queries_per_second", "seed"}) {
      if (arrivals.Has(field)) {
        arrivals.Error(field, "means nothing beside requests (expected one of them)");
      }
    }
    const std::string path = arrivals.cursor().FilePath("requests");
    if (const std::string why_not = WhyNotAFile(path); !why_not.empty()) {
      arrivals.Error("requests", fmt::format("{}: {}", path, why_not));
    } else {
      inference.requests = LoadRequests(path, diagnostics);
    }
    return;
  }
  LoadQueries(reader, inference, diagnostics);
  double per_second = 0;
  if (!arrivals.Has("queries_per_second")) {
    arrivals.Missing("queries_per_second", "e.g. 10, or requests");
  }
  arrivals.Ratio("queries_per_second", kRateMax, per_second);
  const uint64_t seed = arrivals.cursor().Number(diagnostics, "seed", 1, 0, UINT64_MAX);
  if (per_second == 0 || inference.requests.empty()) return;
  const Request& alike = inference.requests.front();
  inference.requests = PoissonRequests(static_cast<uint32_t>(inference.requests.size()),
                                       alike.prompt_tokens, alike.output_tokens, per_second, seed);
  if (inference.requests.back().arrival_ps < kPlanPsMax) return;
  // Gaps are 1 / rate on average; twice that is room enough for chance.
  const double least = 2.0 * static_cast<double>(inference.requests.size()) /
                       (static_cast<double>(kPlanPsMax) / kPsPerSecond);
  arrivals.Error(
      "queries_per_second",
      fmt::format("the {} queries take more than {} to arrive (expected at least {:.2g})",
                  inference.requests.size(), FormatDuration(kPlanPsMax), least));
}

// The tensor group of prefill and that of decoding share the model's heads as parallelism.tensor
// does, and keys and values go between them whole parts at a time.
void LoadPrefill(const PlanReader& reader, const ModelConfig& model, const Parallelism& parallelism,
                 Inference& inference, Diagnostics& diagnostics) {
  const PlanReader prefill(reader.cursor().Child("prefill"), diagnostics);
  prefill.Required("tensor", 1, 65'536, "e.g. 8", inference.prefill_tensor);
  const uint32_t ranks = inference.prefill_tensor;
  const uint32_t tensor = parallelism.tensor();
  if (ranks == 0) return;
  if (ranks % tensor != 0 && tensor % ranks != 0) {
    prefill.Error(
        "tensor",
        fmt::format("{} ranks and parallelism.tensor {} do not divide one another "
                    "(expected {} or {})",
                    ranks, tensor, NearestDivisors(tensor, ranks), (ranks / tensor + 1) * tensor));
    return;
  }
  if (model.heads == 0) return;
  const std::string problem = WhyNotTensor(ranks, model, false);
  if (problem.empty()) return;
  uint32_t below = ranks;
  while (!WhyNotTensor(below, model, false).empty()) --below;  // 1 divides everything
  prefill.Error("tensor", fmt::format("{} {} (expected {})", ranks, problem, below));
}

}  // namespace

Inference LoadInference(const ProtoCursor& cursor, const Plan& plan, Diagnostics& diagnostics) {
  const ModelConfig& model = plan.model;
  const PlanReader reader(cursor, diagnostics);
  Inference inference;
  reader.Number("batch", 1, kRequestsMax, inference.batch);
  inference.continuous = reader.Has("arrivals");
  if (inference.continuous) {
    LoadArrivals(reader, inference, diagnostics);
  } else {
    LoadQueries(reader, inference, diagnostics);
  }
  if (reader.Has("prefill")) {
    LoadPrefill(reader, model, plan.parallelism, inference, diagnostics);
  }
  double prompt_tokens = 0;
  for (const Request& request : inference.requests) {
    prompt_tokens = std::max<double>(prompt_tokens, request.prompt_tokens);
  }
  const double bytes =
      inference.batch * prompt_tokens * model.hidden * PrecisionBytes(model.precision);
  if (bytes > static_cast<double>(kOperationBytesMax)) {
    reader.Error("prompt_tokens",
                 fmt::format("one AllReduce of the prefill would be of {:.3g} bytes (expected at "
                             "most {}: fewer tokens or a smaller batch)",
                             bytes, FormatBytes(kOperationBytesMax)));
  }
  const auto& message = cursor.As<protos::Inference>();
  inference.separate_shared_reduction = message.shared_reduction() == protos::Inference::SEPARATE;
  if (reader.Has("shared_reduction") &&
      (!model.experts || model.experts->shared_feed_forward == 0)) {
    reader.Error("shared_reduction", "the model has no shared expert (expected none)");
  } else if (reader.Has("shared_reduction") && plan.parallelism.expert > 1) {
    reader.Error("shared_reduction",
                 "routed experts are not reduced with expert parallelism (expected none)");
  }
  return inference;
}

}  // namespace railyard
