// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/figure_text.h"

#include <cmath>
#include <cstddef>

#include <fmt/format.h>

#include "simulator/units/units.h"

namespace railyard {

std::string CountText(uint64_t value) {
  std::string digits = std::to_string(value);
  for (size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string PluralText(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", CountText(count), noun, count == 1 ? "" : "s");
}

std::string PercentText(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string StretchText(std::optional<double> stretch) {
  if (!stretch) return std::string(kAbsentText);
  if (*stretch == 1) return "1";
  if (*stretch >= 1e7) return fmt::format("{:.2e}", *stretch);
  if (*stretch >= 100) return CountText(static_cast<uint64_t>(std::llround(*stretch)));
  std::string rounded = fmt::format("{:.3f}", *stretch);
  if (rounded != "1.000") return rounded;
  return fmt::format("{}{}", *stretch > 1 ? ">" : "<", rounded);
}

std::string SecondsText(double seconds) {
  return fmt::format("{:.{}f}", seconds, seconds < 10 ? 2 : 1);
}

std::string BusbwText(std::optional<double> busbw_GBps) {
  if (!busbw_GBps) return std::string(kAbsentText);
  if (*busbw_GBps >= 1e6) return fmt::format("{:.2e}", *busbw_GBps);
  if (*busbw_GBps >= 100) return fmt::format("{:.0f}", *busbw_GBps);
  if (*busbw_GBps >= 10) return fmt::format("{:.1f}", *busbw_GBps);
  return fmt::format("{:.3f}", *busbw_GBps);
}

std::string DurationText(std::optional<int64_t> duration_ps) {
  return duration_ps ? FormatDuration(*duration_ps) : std::string(kAbsentText);
}

std::string TimeText(int64_t time_ps) {
  return DurationText(time_ps == kNeverPs ? std::nullopt : std::optional(time_ps));
}

}  // namespace railyard
