// SPDX-License-Identifier: GPL-2.0-only
// T = T_comp + T_tp + T_ep + T_pp + T_dp + T_wait + T_bubble of a plan, with the times of its calls
// measured on the fabric. In training with m micro-batches on p stages (1 without pipeline), of the
// stage whose computation, blocking calls and exposed data-parallel calls take longest together:
//   T_comp, T_tp, T_dp  that stage's rank by itself (RankTimeline)
//   T_ep, T_wait        experts' exchanges and what ranks wait for before them (ExpertTime)
//   T_bubble  (p - 1) / m of what it computes and waits for in its own stream, without the
//   optimizer
//             (Narayanan et al., arXiv 2104.04473, section 2.2.1); over the chunks with
//             interleaving; a third with ZB-H1 (Qi et al., arXiv 2401.10241: f + b - w, all three
//             alike)
//   T_pp      2 (p - 1) ceil(m / p) transfers of a micro-batch: the p in flight wait for one
//   another
//             once around the pipeline; with interleaving, whose warm-up hides the others,
//             2 (p v - 1) for v chunks
// Inference and other models than transformers: the rank that takes longest.
#pragma once

#include <string>

#include "analysis/result/run_result.h"
#include "simulator/measure/call_times.h"
#include "workloads/plans/plan.h"

namespace railyard {

// Estimates all iterations. `trace` is the whole trace of the plan.
EstimateResult EstimatePlan(const Plan& plan, const Trace& trace, const CallTimes& times);

}  // namespace railyard
