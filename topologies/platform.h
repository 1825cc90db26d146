// SPDX-License-Identifier: GPL-2.0-only
// Kinds of server by name.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "topologies/server.h"

namespace railyard {

struct Platform {
  std::string_view name;
  std::string_view description;  // one line
  std::string_view source;
  ServerSpec server;
};
const std::vector<Platform>& Platforms();
// nullopt if there is no such platform.
std::optional<ServerSpec> FindPlatform(std::string_view name);

}  // namespace railyard
