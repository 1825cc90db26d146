// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/compute_loader.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "workloads/plans/plan_reader.h"

namespace railyard {
namespace {

constexpr double kBackwardRatioMax = 100;

GivenTimes LoadGiven(const PlanReader& reader, bool is_training) {
  GivenTimes given;
  const auto required = [&](const char* field, int64_t& value_ps) {
    if (!reader.Has(field)) reader.Missing(field, "a duration, e.g. \"150us\"");
    reader.Duration(field, kComputePsMax, value_ps);
  };
  required("attention", given.attention_ps);
  required("feed_forward", given.feed_forward_ps);
  required("embedding", given.embedding_ps);
  required("output_layer", given.output_layer_ps);
  if (is_training) {
    if (!reader.Has("backward_ratio")) reader.Missing("backward_ratio", "e.g. 2");
    reader.Ratio("backward_ratio", kBackwardRatioMax, given.backward_ratio);
    required("optimizer", given.optimizer_ps);
    return given;
  }
  for (const char* const field : {"backward_ratio", "optimizer"}) {
    if (reader.Has(field)) reader.Error(field, "means nothing for inference (expected none)");
  }
  return given;
}

}  // namespace

ComputeSettings LoadCompute(const ProtoCursor& cursor, Precision precision, bool is_training,
                            Diagnostics& diagnostics) {
  const PlanReader reader(cursor, diagnostics);
  ComputeSettings compute;
  if (reader.Has("given")) {
    for (const char* const field :
         {"accelerator", "utilisation", "memory_utilisation", "part_overhead"}) {
      if (reader.Has(field)) {
        reader.Error(field, "means nothing beside given times (expected one of them)");
      }
    }
    compute.given = LoadGiven(PlanReader(cursor.Child("given"), diagnostics), is_training);
    return compute;
  }
  for (const char* const field : {"utilisation", "memory_utilisation"}) {
    if (!reader.Has(field)) reader.Missing(field, "above 0, at most 1, e.g. 0.4");
  }
  reader.Ratio("utilisation", 1, compute.utilisation);
  reader.Ratio("memory_utilisation", 1, compute.memory_utilisation);
  reader.Duration("part_overhead", kComputePsMax, compute.part_overhead_ps);
  if (!reader.Has("accelerator")) {
    reader.Missing("accelerator", "e.g. \"h100-sxm\", or given times");
    return compute;
  }
  const std::string name = cursor.Text("accelerator", "");
  const auto accelerator = FindAccelerator(name);
  if (!accelerator) {
    std::vector<std::string> names;
    for (const Accelerator& known : Accelerators()) names.emplace_back(known.name);
    reader.Error("accelerator", UnknownName("accelerator", name, names));
    return compute;
  }
  compute.accelerator = *accelerator;
  if (accelerator->PeakFlops(precision) > 0) return compute;
  std::vector<std::string> names;
  for (int i = 0; i < kPrecisionCount; ++i) {
    const auto other = static_cast<Precision>(i);
    if (accelerator->PeakFlops(other) > 0) names.emplace_back(PrecisionName(other));
  }
  reader.Error("accelerator",
               fmt::format("{} has no {} matrix operations (expected model.precision {})",
                           Quote(name), PrecisionName(precision), JoinAlternatives(names)));
  return compute;
}

}  // namespace railyard
