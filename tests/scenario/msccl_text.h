// SPDX-License-Identifier: GPL-2.0-only
// Writes steps of MSCCL's programs, and counts those of the algorithms that they become.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

inline std::string StepText(size_t number, const std::string& type, const std::string& from,
                            const std::string& to, int count = 1,
                            const std::string& after = "-1:-1") {
  const auto slot = [](const char* side, const std::string& at) {
    return fmt::format(R"({0}buf="{1}" {0}off="{2}")", side, at.substr(0, 1), at.substr(1));
  };
  const size_t colon = after.find(':');
  return fmt::format("<step s=\"{}\" type=\"{}\" {} {} cnt=\"{}\" depid=\"{}\" deps=\"{}\"/>\n",
                     number, type, slot("src", from), slot("dst", to), count,
                     after.substr(0, colon), after.substr(colon + 1));
}

inline size_t CountOf(const ExplicitAlgorithm& algorithm, bool (*is_counted)(const Step&)) {
  size_t count = 0;
  for (const auto& [place, lanes] : algorithm.lanes) {
    for (const auto& lane : lanes) {
      for (const ExplicitStep& step : lane) count += is_counted(step.step) ? 1 : 0;
    }
  }
  return count;
}

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace railyard
