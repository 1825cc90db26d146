// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/model/compute_cost.h"

#include <algorithm>
#include <cmath>

namespace railyard {

int64_t ComputeTimePs(const ComputeSettings& compute, Precision precision, const Work& work) {
  const double flops_per_second = compute.accelerator.PeakFlops(precision) * compute.utilisation;
  const double bytes_per_second =
      1e9 * compute.accelerator.memory_gbytes_per_second * compute.memory_utilisation;
  const double seconds =
      std::max(work.flops / flops_per_second, work.memory_bytes / bytes_per_second);
  const auto work_ps = static_cast<int64_t>(
      std::llround(std::min(seconds * 1e12, static_cast<double>(kComputePsMax))));
  return std::min(work_ps + compute.part_overhead_ps, kComputePsMax);
}

}  // namespace railyard
