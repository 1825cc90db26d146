// SPDX-License-Identifier: GPL-2.0-only
// Describes the routing of tokens in a mixture of experts, as a plan states it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/plans/precision.h"

namespace railyard {

enum class GateKind : uint8_t { kUniform, kZipf, kDirichlet, kCaptured };

// Holds the tokens that each expert got: [iteration][layer with experts][expert].
using CapturedRouting = std::vector<std::vector<std::vector<double>>>;

struct ExpertRouting {
  GateKind gate = GateKind::kUniform;
  double zipf_exponent = 1;
  double dirichlet_concentration = 1;
  CapturedRouting captured;
  double correlation = 0;         // probability that a token has the experts of the token before it
  uint32_t drift_iterations = 0;  // until the gate is uniform; 0 without drift
  double capacity_factor = 0;     // 0 if no token is dropped
  uint64_t seed = 1;
  std::optional<Precision> dispatch_precision;  // if absent, the model's
  uint32_t loss_tolerance_ppm = 0;              // as in TraceOperation
  uint32_t hierarchical_groups_of = 0;          // group size of two-step exchanges; 0 for one step
};

}  // namespace railyard
