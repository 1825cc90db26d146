// SPDX-License-Identifier: GPL-2.0-only
// The routing of tokens in a mixture of experts, as a plan states it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/plans/model/precision.h"

namespace railyard {

enum class GateKind : uint8_t { kUniform, kZipf, kDirichlet, kCaptured };

// Tokens that each expert got: [iteration][layer with experts][expert].
using CapturedRouting = std::vector<std::vector<std::vector<double>>>;

struct ExpertRouting {
  GateKind gate = GateKind::kUniform;
  double zipf_exponent = 1;
  double dirichlet_concentration = 1;
  CapturedRouting captured;
  double correlation = 0;         // probability that a token goes where the one before it went
  uint32_t drift_iterations = 0;  // until the gate is uniform; 0: no drift
  double capacity_factor = 0;     // 0: no token is dropped
  uint64_t seed = 1;
  std::optional<Precision> dispatch_precision;  // absent: the model's
  uint32_t loss_tolerance_ppm = 0;              // as TraceOperation's
  uint32_t hierarchical_groups_of = 0;          // ranks of a group, in two steps; 0: in one
};

}  // namespace railyard
