// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string_view>
#include <vector>

namespace railyard {

struct ShippedPlatform {
  std::string_view name;
  const char* text;
};
// Returns topologies/platforms/*.textproto by name, embedded by the build.
const std::vector<ShippedPlatform>& ShippedPlatforms();

}  // namespace railyard
