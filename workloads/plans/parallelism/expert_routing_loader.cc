// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/parallelism/expert_routing_loader.h"

#include <string>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"
#include "workloads/plans/parallelism/captured_routing.h"
#include "workloads/plans/plan_reader.h"

namespace railyard {
namespace {

constexpr double kExponentMax = 10;
constexpr double kConcentrationMax = 1e6;
constexpr double kCapacityFactorMax = 1e6;
constexpr uint32_t kDriftIterationsMax = 1'000'000;

GateKind GateOf(int value) {
  switch (value) {
    case protos::ExpertRouting::ZIPF:
      return GateKind::kZipf;
    case protos::ExpertRouting::DIRICHLET:
      return GateKind::kDirichlet;
    case protos::ExpertRouting::CAPTURED:
      return GateKind::kCaptured;
    default:
      return GateKind::kUniform;
  }
}

}  // namespace

ExpertRouting LoadRouting(const ProtoCursor& cursor, const ModelConfig& model, bool is_training,
                          Diagnostics& diagnostics) {
  const PlanReader reader(cursor, diagnostics);
  ExpertRouting routing;
  routing.gate = GateOf(cursor.As<protos::ExpertRouting>().gate());
  const auto only_with = [&](const char* field, GateKind gate, const char* name) {
    if (!reader.Has(field) || routing.gate == gate) return;
    reader.Error(field, fmt::format("means nothing here (expected gate: {})", name));
  };
  only_with("zipf_exponent", GateKind::kZipf, "ZIPF");
  only_with("dirichlet_concentration", GateKind::kDirichlet, "DIRICHLET");
  only_with("captured", GateKind::kCaptured, "CAPTURED");
  reader.Ratio("zipf_exponent", kExponentMax, routing.zipf_exponent);
  reader.Ratio("dirichlet_concentration", kConcentrationMax, routing.dirichlet_concentration);
  // The default may be stated.
  if (cursor.As<protos::ExpertRouting>().correlation() != 0) {
    reader.Ratio("correlation", 1, routing.correlation);
  }
  reader.Ratio("capacity_factor", kCapacityFactorMax, routing.capacity_factor);
  routing.seed = cursor.Number(diagnostics, "seed", routing.seed, 0, UINT64_MAX);
  if (reader.Has("dispatch_precision")) {
    reader.ReadPrecision("dispatch_precision", routing.dispatch_precision.emplace());
  }
  const double tolerance = cursor.As<protos::ExpertRouting>().loss_tolerance();
  if (const auto ppm = LossTolerancePpm(tolerance)) {
    routing.loss_tolerance_ppm = *ppm;
  } else {
    reader.Error("loss_tolerance", OutOfLossTolerance(tolerance));
  }
  reader.Number("hierarchical_groups_of", 2, UINT32_MAX, routing.hierarchical_groups_of);
  if (reader.Has("drift_iterations")) {
    reader.Number("drift_iterations", 1, kDriftIterationsMax, routing.drift_iterations);
    if (!is_training) {
      reader.Error("drift_iterations", "inference has no iterations (expected none)");
    } else if (routing.gate == GateKind::kUniform) {
      reader.Error("drift_iterations",
                   "the gate is uniform already (expected gate: ZIPF, DIRICHLET or CAPTURED)");
    }
  }
  if (routing.gate != GateKind::kCaptured) return routing;
  if (!reader.Has("captured")) {
    reader.Missing("captured", "a CSV file, e.g. \"routing.csv\"");
    return routing;
  }
  const std::string path = cursor.FilePath("captured");
  if (const std::string why_not = WhyNotAFile(path); !why_not.empty()) {
    reader.Error("captured", fmt::format("{}: {}", path, why_not));
    return routing;
  }
  routing.captured = LoadCapturedRouting(path, *model.experts,
                                         model.layers - model.experts->dense_layers, diagnostics);
  return routing;
}

}  // namespace railyard
