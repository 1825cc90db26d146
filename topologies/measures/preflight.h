// SPDX-License-Identifier: GPL-2.0-only
// Checks a fabric statically before it is simulated: errors, and properties worth knowing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/measures/fabric_measures.h"

namespace railyard {

enum class PreflightSeverity : uint8_t {
  kError,    // a job may be unable to run, or may hang
  kWarning,  // it costs performance, or is a single point of failure
  kInfo,
};
std::string_view PreflightSeverityName(PreflightSeverity severity);  // "error", "warning", "info"

struct PreflightFinding {
  PreflightSeverity severity = PreflightSeverity::kInfo;
  std::string code;  // "UNREACHABLE", stable
  std::string what;
};

// Returns the findings, the most severe first. Codes: UNREACHABLE, PFC_DEADLOCK (errors);
// MISSING_RAIL, NO_COMMON_NVSWITCH, UNEQUAL_BUNDLE, OVERSUBSCRIBED, SINGLE_POINT_OF_FAILURE
// (warnings); RELAYED_PAIRS, LOSSLESS_CLASSES (info).
std::vector<PreflightFinding> Preflight(const FabricGraph& fabric, const FabricMeasures& measures);

}  // namespace railyard
