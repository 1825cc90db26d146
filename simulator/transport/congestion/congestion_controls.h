// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ns3/object-factory.h>

namespace railyard {

// Returns the names of all controls as scenarios use them: NONE, DCQCN, …
std::vector<std::string> CongestionControlNames();
// Returns a factory of the control with default attributes, which the caller can change, or nothing
// if the name is unknown.
std::optional<ns3::ObjectFactory> CongestionControlNamed(std::string_view name);

}  // namespace railyard
