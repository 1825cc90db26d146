// SPDX-License-Identifier: GPL-2.0-only
// Names of cables: the names of their two ends, as in "server1/nic3--leaf3", and a number for
// parallel ones, as in "leaf3--spine0#1".
#pragma once

#include <string>
#include <string_view>

namespace railyard {

inline constexpr std::string_view kCableSeparator = "--";

// Returns the name with its ends exchanged; empty if it is no name of a cable.
std::string WithOtherEndFirst(std::string_view cable_name);

}  // namespace railyard
