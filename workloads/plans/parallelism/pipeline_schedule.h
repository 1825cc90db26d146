// SPDX-License-Identifier: GPL-2.0-only
// Determines the layers of each pipeline stage and the order in which it works on micro-batches. A
// stage holds one chunk of the model or, with interleaving, several: chunk c of stage s is the
// virtual stage c x stages + s.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/plans/plan/plan.h"

namespace railyard {

enum class StageWork : uint8_t {
  kForward,
  kBackward,       // gradients of inputs and, unless the schedule splits them, of weights
  kWeightGradient  // of weights alone
};

struct StageTask {
  StageWork work = StageWork::kForward;
  uint32_t micro_batch = 0;
  uint32_t chunk = 0;

  bool operator==(const StageTask&) const = default;
};

struct PipelineShape {
  PipelineScheduleKind kind = PipelineScheduleKind::kOneFOneB;
  uint32_t stages = 1;
  uint32_t chunks = 1;  // per stage; more than one with kInterleaved only
  uint32_t micro_batches = 1;
};

// Returns the tasks of a stage, in order. Precondition: with kInterleaved, `stages` divides
// `micro_batches`.
//   One forward one backward (Narayanan et al., arXiv 2104.04473, section 2.2.1): stage s begins
//   with stages - 1 - s forward passes. Its bubble is (stages - 1) (forward + backward).
//   Interleaved (section 2.2.2): the same over virtual stages, in groups of `stages` micro-batches.
//   Zero bubble (Qi et al., arXiv 2401.10241, section 3, ZB-H1): weight gradients of stage s wait
//   until s + 1 of them are there, and fill the end; the bubble is (stages - 1) (forward + input
//   gradient - weight gradient).
std::vector<StageTask> StageTasks(const PipelineShape& shape, uint32_t stage);

// Returns the layers of a virtual stage as [first, second). Precondition: the plan's job is a
// Training.
std::pair<uint32_t, uint32_t> LayersOf(const Plan& plan, uint32_t virtual_stage);

}  // namespace railyard
