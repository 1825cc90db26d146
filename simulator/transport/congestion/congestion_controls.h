// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ns3/object-factory.h>

namespace railyard {

// The controls there are, by the names scenarios use: NONE, DCQCN, …
std::vector<std::string> CongestionControlNames();
// Makes controls of that name with default attributes; others may be set on the factory.
std::optional<ns3::ObjectFactory> CongestionControlNamed(std::string_view name);

}  // namespace railyard
