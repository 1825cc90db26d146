// SPDX-License-Identifier: GPL-2.0-only
// Loads a plan's text into a plan that can be synthesized.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Reads the railyard.protos.Plan at `cursor`. Returns nullopt after an error. All errors are
// reported: numbers out of range, fields without effect, degrees that do not divide the parts to
// which they apply.
std::optional<Plan> LoadPlan(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Reads the plan in a file. `sets` are as in LoadTextProto; `set_prefix` is that of a
// TextProtoReach.
std::optional<Plan> LoadPlanFile(const std::string& path, const std::vector<std::string>& sets,
                                 Diagnostics& diagnostics, const std::string& set_prefix = "");

}  // namespace railyard
