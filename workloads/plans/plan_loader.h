// SPDX-License-Identifier: GPL-2.0-only
// From a plan's text to a plan that can be synthesized.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "workloads/plans/plan.h"

namespace railyard {

// `cursor` is on a railyard.protos.Plan. nullopt after an error; all are reported: numbers out of
// range, fields without effect, parts that do not divide what they divide.
std::optional<Plan> LoadPlan(const ProtoCursor& cursor, Diagnostics& diagnostics);

// Reads the file first. `sets` as LoadTextProto's; `set_prefix` is that of a TextProtoReach.
std::optional<Plan> LoadPlanFile(const std::string& path, const std::vector<std::string>& sets,
                                 Diagnostics& diagnostics, const std::string& set_prefix = "");

}  // namespace railyard
