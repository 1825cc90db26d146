// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "workloads/plans/plan.h"
#include "workloads/plans/plan_reader.h"

namespace railyard {

// `training`'s field fine_tuning, if it is there. Findings are at their fields.
FineTuning LoadFineTuning(const PlanReader& training, const Plan& plan);

}  // namespace railyard
