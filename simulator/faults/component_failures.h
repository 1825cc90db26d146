// SPDX-License-Identifier: GPL-2.0-only
// Returns published rates at which components of large clusters fail, and how long repairs take.
#pragma once

#include <cstdint>

namespace railyard {

enum class ComponentClass : uint8_t { kNicTorLink, kTorSwitch, kGpu };

struct ComponentFailures {
  double mean_between_s = 0;  // between failures of one component
  double mean_repair_s = 0;
};
ComponentFailures PublishedFailures(ComponentClass component);

}  // namespace railyard
