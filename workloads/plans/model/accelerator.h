// SPDX-License-Identifier: GPL-2.0-only
// Lists the rates at which GPUs compute and read memory, as their makers publish them.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "workloads/plans/precision.h"

namespace railyard {

struct Accelerator {
  std::string_view name;
  std::string_view source;
  // Dense matrix operations with FP32 accumulation, 1e12 FLOP/s, by Precision; 0 if unsupported.
  std::array<double, kPrecisionCount> peak_tflops{};
  double memory_gbytes_per_second = 0;  // 1e9 bytes

  double PeakFlops(Precision precision) const {
    return 1e12 * peak_tflops[static_cast<size_t>(precision)];
  }
};
const std::vector<Accelerator>& Accelerators();
std::optional<Accelerator> FindAccelerator(std::string_view name);

}  // namespace railyard
