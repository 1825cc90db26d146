// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "workloads/plans/plan/plan.h"
#include "workloads/plans/plan_reader.h"

namespace railyard {

// Loads the field fine_tuning of `training`, if it is present. Findings are at their fields.
FineTuning LoadFineTuning(const PlanReader& training, const Plan& plan);

}  // namespace railyard
