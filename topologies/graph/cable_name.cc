// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/cable_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace railyard {

std::string WithOtherEndFirst(std::string_view cable_name) {
  const size_t separator = cable_name.find(kCableSeparator);
  if (separator == std::string_view::npos) return {};
  const std::string_view from = cable_name.substr(0, separator);
  const std::string_view to = cable_name.substr(separator + kCableSeparator.size());
  const size_t number = std::min(to.find('#'), to.size());
  return fmt::format("{}{}{}{}", to.substr(0, number), kCableSeparator, from, to.substr(number));
}

}  // namespace railyard
