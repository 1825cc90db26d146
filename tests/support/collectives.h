// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "simulator/units/job_ids.h"

namespace railyard::testing {

inline std::vector<CollectiveIndex> Collectives(std::initializer_list<uint32_t> numbers) {
  std::vector<CollectiveIndex> collectives;
  for (const uint32_t number : numbers) collectives.push_back(CollectiveIndex{number});
  return collectives;
}

}  // namespace railyard::testing
