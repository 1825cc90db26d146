// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "workloads/plans/model/compute_cost.h"

namespace railyard {

// Returns the work of Adam with mixed precision (Micikevicius et al., arXiv 1710.03740) for
// `elements` elements on one GPU: it reads the gradient, reads and writes master weight and two
// moments in FP32, and writes the weight.
inline Work OptimizerWork(double elements, Precision gradient, Precision parameter) {
  return {.flops = 0,
          .memory_bytes =
              elements * (PrecisionBytes(gradient) + 2 * 3 * 4 + PrecisionBytes(parameter))};
}

}  // namespace railyard
