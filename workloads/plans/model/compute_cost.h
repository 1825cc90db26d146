// SPDX-License-Identifier: GPL-2.0-only
// Computes the time that one GPU takes for a part of a model: a given time, or the larger of its
// operations over the accelerator's usable FLOP/s and its bytes over the usable memory bandwidth
// (the roofline model; Williams et al., CACM 52(4), 2009).
#pragma once

#include <cstdint>
#include <optional>

#include "workloads/plans/model/accelerator.h"
#include "workloads/plans/model/model_config.h"

namespace railyard {

struct GivenTimes {
  int64_t attention_ps = 0;
  int64_t feed_forward_ps = 0;
  int64_t embedding_ps = 0;
  int64_t output_layer_ps = 0;
  double backward_ratio = 2;
  int64_t optimizer_ps = 0;
};

struct ComputeSettings {
  Accelerator accelerator;
  double utilisation = 1;         // of the peak FLOP/s
  double memory_utilisation = 1;  // of the memory bandwidth
  int64_t part_overhead_ps = 0;
  std::optional<GivenTimes> given;
};

// Describes the work of one GPU in one part of the model.
struct Work {
  double flops = 0;
  double memory_bytes = 0;
};

// Returns the time rounded to the picosecond, and at most kComputePsMax.
int64_t ComputeTimePs(const ComputeSettings& compute, Precision precision, const Work& work);
// kPlanPsMax bounds all the computation of a rank, and also the last arrival of a request, so that
// their sum plus the time of calls is within simulated time (2^63 ps). kComputePsMax, a day, bounds
// the time of one part.
inline constexpr int64_t kPlanPsMax = int64_t{1} << 61;
inline constexpr int64_t kComputePsMax = int64_t{86'400} * 1'000'000'000'000;

}  // namespace railyard
