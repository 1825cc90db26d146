// SPDX-License-Identifier: GPL-2.0-only
// Figures as a person reads them in a table or a sentence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace railyard {

// What stands where there is no figure.
inline constexpr std::string_view kAbsentText = "-";

std::string CountText(uint64_t value);                          // "1,234,567"
std::string PluralText(uint64_t count, std::string_view noun);  // "1 rank", "2 ranks"
std::string PercentText(double share);                          // "22.2 %" of 0.222
std::string SecondsText(double seconds);
std::string BusbwText(std::optional<double> busbw_GBps);
// "1" only if it is exactly 1, ">1.000" if it is hardly more.
std::string StretchText(std::optional<double> stretch);
std::string DurationText(std::optional<int64_t> duration_ps);
// A point in time; absent where it never came.
std::string TimeText(int64_t time_ps);

}  // namespace railyard
