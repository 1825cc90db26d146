// SPDX-License-Identifier: GPL-2.0-only
// What GPUs exchanged in an earlier run, from the pairs.csv of its results.
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

// Of a CSV file with the columns source_gpu, destination_gpu and payload_bytes, among others or
// not. GPUs are numbers below `gpus`, 1 or more. nullopt after an error; mistakes are findings at
// their lines. Precondition: the file exists.
std::optional<std::vector<GpuTraffic>> LoadTraffic(const std::string& path, uint64_t gpus,
                                                   Diagnostics& diagnostics);

}  // namespace railyard
