// SPDX-License-Identifier: GPL-2.0-only
#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace_check.h"
#include "workloads/plans/job_loader.h"
#include "workloads/plans/plan_reader.h"

namespace railyard {
namespace {

constexpr uint32_t kQueriesMax = 1'000'000;
constexpr uint32_t kTokensMax = 16'777'216;

}  // namespace

Inference LoadInference(const ProtoCursor& cursor, const ModelConfig& model,
                        Diagnostics& diagnostics) {
  const PlanReader reader(cursor, diagnostics);
  Inference inference;
  reader.Required("queries", 1, kQueriesMax, "e.g. 8", inference.queries);
  reader.Number("batch", 1, kQueriesMax, inference.batch);
  reader.Required("prompt_tokens", 1, kTokensMax, "e.g. 512", inference.prompt_tokens);
  reader.Required("output_tokens", 1, kTokensMax, "e.g. 256", inference.output_tokens);
  if (inference.queries > 0 && inference.queries % inference.batch != 0) {
    reader.Error("batch", fmt::format("{} does not divide the {} queries (expected {})",
                                      inference.batch, inference.queries,
                                      NearestDivisors(inference.queries, inference.batch)));
  }
  const double bytes = static_cast<double>(inference.batch) * inference.prompt_tokens *
                       model.hidden * PrecisionBytes(model.precision);
  if (bytes > static_cast<double>(kOperationBytesMax)) {
    reader.Error("prompt_tokens",
                 fmt::format("one AllReduce of the prefill would be of {:.3g} bytes (expected at "
                             "most {}: fewer tokens or a smaller batch)",
                             bytes, FormatBytes(kOperationBytesMax)));
  }
  const auto& message = static_cast<const protos::Inference&>(cursor.message());
  inference.separate_shared_reduction = message.shared_reduction() == protos::Inference::SEPARATE;
  if (reader.Has("shared_reduction") &&
      (!model.experts || model.experts->shared_feed_forward == 0)) {
    reader.Error("shared_reduction", "the model has no shared expert (expected none)");
  }
  return inference;
}

}  // namespace railyard
