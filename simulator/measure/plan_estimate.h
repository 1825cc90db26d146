// SPDX-License-Identifier: GPL-2.0-only
// Estimates the time of a plan from the times of its calls, which were measured on the fabric:
//
//   T = T_comp + T_tp + T_ep + T_pp + T_dp + T_wait + T_bubble
//
// In training with m micro-batches on p stages (1 without a pipeline), the terms are those of the
// stage whose computation, blocking calls and exposed data-parallel calls take longest together:
//
//   T_comp, T_tp, T_dp  These are the times of the stage's rank by itself (RankTimeline).
//   T_ep, T_wait        These are the times of the experts' exchanges, and of the waits of ranks
//                       for each other before them (ExpertTime).
//   T_bubble            This is 1 / m of the time for which the ranks of the other stages compute
//   or
//                       wait in their own streams, without the optimizer. If all stages are equal,
//                       that is (p - 1) / m of the stage's own (Narayanan et al., arXiv 2104.04473,
//                       section 2.2.1). It is divided by the number of chunks with interleaving,
//                       and by 3 with ZB-H1 (Qi et al., arXiv 2401.10241: f + b - w, with all three
//                       equal).
//   T_pp                This is the time of 2 (p - 1) ceil(m / p) transfers of a micro-batch: the p
//                       micro-batches in flight wait for one another once around the pipeline. With
//                       interleaving of v chunks, whose warm-up hides the others, it is that of
//                       2 (p v - 1) transfers.
//
// In inference, and for models other than transformers, the terms are those of the rank that takes
// longest; T_bubble and T_pp are 0.
#pragma once

#include <string>

#include "analysis/result/run_result.h"
#include "simulator/measure/call_times.h"
#include "workloads/plans/plan/plan.h"

namespace railyard {

// Estimates all iterations. `trace` is the whole trace of the plan.
EstimateResult EstimatePlan(const Plan& plan, const Trace& trace, const CallTimes& times);

}  // namespace railyard
