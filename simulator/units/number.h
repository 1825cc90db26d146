// SPDX-License-Identifier: GPL-2.0-only
// Parses texts that consist of a number alone.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace railyard {

// Returns true if all of `text` is a number that fits `value`.
template <std::integral Number>
bool ParseNumber(std::string_view text, Number& value, int base = 10) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && stop == end && !text.empty();
}
inline bool ParseNumber(std::string_view text, double& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

// Returns the number of which the whole text consists; nullopt if it is not a number or does not
// fit.
template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number value = 0;
  return ParseNumber(text, value) ? std::optional(value) : std::nullopt;
}

}  // namespace railyard
