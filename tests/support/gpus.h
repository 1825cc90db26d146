// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard::testing {

// Returns the GPUs with these numbers.
inline std::vector<GpuIndex> Gpus(std::initializer_list<uint32_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace railyard::testing
