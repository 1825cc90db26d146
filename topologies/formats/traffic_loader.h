// SPDX-License-Identifier: GPL-2.0-only
// Loads the traffic between GPUs of an earlier run from the pairs.csv of its results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct GpuTraffic {
  uint32_t source = 0;
  uint32_t destination = 0;
  uint64_t bytes = 0;
};

// Reads a CSV file with at least the columns source_gpu, destination_gpu and payload_bytes. GPUs
// are numbers below `gpus`, which is 1 or more. Returns nullopt after an error; mistakes are
// findings at their lines. Precondition: the file exists.
std::optional<std::vector<GpuTraffic>> LoadTraffic(const std::string& path, uint64_t gpus,
                                                   Diagnostics& diagnostics);

}  // namespace railyard
