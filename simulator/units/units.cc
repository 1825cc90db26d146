// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/units/units.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "simulator/units/quantity_errors.h"

namespace railyard {
namespace {

using Uint128 = unsigned __int128;

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr uint64_t PowerOfTen(int exponent) {
  uint64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// "4.096us" as 4096 / 10^3 and "us".
struct Quantity {
  Uint128 mantissa = 0;
  int decimals = 0;
  std::string_view unit;
  bool is_too_long = false;  // it has too many digits, and the two numbers are meaningless
};

// Significant digits beyond which text is refused: 2^64 has 20, and 20 digits times the largest
// unit (an hour in picoseconds, 52 bits) stay below 128 bits.
constexpr int kMaxSignificantDigits = 20;

// DIGITS[.DIGITS][one space]UNIT; the unit may be empty but then nothing follows the digits.
// Nullopt where the text has another form.
std::optional<Quantity> SplitQuantity(std::string_view text) {
  size_t position = 0;
  while (position < text.size() && IsDigit(text[position])) ++position;
  std::string_view whole = text.substr(0, position);
  if (whole.empty()) return std::nullopt;
  std::string_view fraction;
  if (position < text.size() && text[position] == '.') {
    const size_t begin = ++position;
    while (position < text.size() && IsDigit(text[position])) ++position;
    fraction = text.substr(begin, position - begin);
    if (fraction.empty()) return std::nullopt;
  }
  Quantity quantity;
  quantity.unit = text.substr(position);
  if (quantity.unit.starts_with(' ')) {
    quantity.unit.remove_prefix(1);
    if (quantity.unit.empty()) return std::nullopt;
  }
  while (fraction.ends_with('0')) fraction.remove_suffix(1);
  int significant = 0;
  for (const std::string_view digits : {whole, fraction}) {
    for (const char digit : digits) {
      if (digit != '0' || significant > 0) ++significant;
      quantity.mantissa = quantity.mantissa * 10 + static_cast<unsigned>(digit - '0');
    }
  }
  quantity.is_too_long =
      significant > kMaxSignificantDigits || fraction.size() > kMaxSignificantDigits;
  quantity.decimals = static_cast<int>(fraction.size());
  return quantity;
}

// mantissa / 10^decimals * factor if that is an integer of at most `max`.
std::optional<uint64_t> Scale(const Quantity& quantity, uint64_t factor, uint64_t max) {
  if (quantity.is_too_long) return std::nullopt;
  Uint128 value = quantity.mantissa * factor;
  for (int i = 0; i < quantity.decimals; ++i) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  if (value > max) return std::nullopt;
  return static_cast<uint64_t>(value);
}

struct Unit {
  std::string_view name;
  uint64_t factor;
};

std::optional<uint64_t> FindFactor(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

constexpr std::array kDurationUnits = {
    Unit{"ps", 1},
    Unit{"ns", kPsPerNs},
    Unit{"us", kPsPerUs},
    Unit{"ms", kPsPerMs},
    Unit{"s", kPsPerSecond},
    Unit{"min", 60 * kPsPerSecond},
    Unit{"h", 3600 * kPsPerSecond},
};

constexpr std::array kDecimalPrefixes = {
    Unit{"", 1},
    Unit{"K", PowerOfTen(3)},
    Unit{"k", PowerOfTen(3)},
    Unit{"M", PowerOfTen(6)},
    Unit{"G", PowerOfTen(9)},
    Unit{"T", PowerOfTen(12)},
};

constexpr std::array kBinaryPrefixes = {
    Unit{"K", 1ULL << 10}, Unit{"k", 1ULL << 10}, Unit{"M", 1ULL << 20}, Unit{"m", 1ULL << 20},
    Unit{"G", 1ULL << 30}, Unit{"g", 1ULL << 30}, Unit{"T", 1ULL << 40}, Unit{"t", 1ULL << 40},
    Unit{"P", 1ULL << 50}, Unit{"p", 1ULL << 50},
};

// Writes value / unit with three significant digits, rounded half up, in the largest of `units`
// (ascending) that leaves at least 1; the integer part is never shortened.
std::string FormatScaled(uint64_t value, std::span<const Unit> units) {
  size_t chosen = 0;
  while (chosen + 1 < units.size() && value >= units[chosen + 1].factor) ++chosen;
  for (;;) {
    const uint64_t factor = units[chosen].factor;
    const uint64_t whole = value / factor;
    const int decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    const uint64_t ten_power = PowerOfTen(decimals);
    const auto rounded =
        static_cast<uint64_t>((Uint128{value} * ten_power * 2 + factor) / (Uint128{factor} * 2));
    // 999.6 ns is 1 us, not 1000 ns.
    if (chosen + 1 < units.size() &&
        Uint128{rounded} * factor >= Uint128{units[chosen + 1].factor} * ten_power) {
      ++chosen;
      continue;
    }
    std::string text = fmt::format("{}", rounded / ten_power);
    if (const uint64_t rest = rounded % ten_power; rest != 0) {
      text += fmt::format(".{:0{}}", rest, decimals);
      while (text.ends_with('0')) text.pop_back();
    }
    return fmt::format("{} {}", text, units[chosen].name);
  }
}

// Words for a quantity that has a known unit of `factor` and yet is none of at most `max`.
std::string WhyOutOfRange(const Quantity& quantity, uint64_t factor, uint64_t max,
                          std::string_view largest, std::string_view finest) {
  if (quantity.is_too_long) {
    return fmt::format("has more than {} significant digits (expected at most {}, in whole {})",
                       kMaxSignificantDigits, largest, finest);
  }
  Uint128 value = quantity.mantissa * factor;
  for (int i = 0; i < quantity.decimals; ++i) value /= 10;
  return value > max ? fmt::format("is too large (expected at most {})", largest)
                     : fmt::format("is too fine (expected whole {})", finest);
}

std::optional<uint64_t> DurationFactor(std::string_view unit) {
  return FindFactor(kDurationUnits, unit);
}

// In bits per second.
std::optional<uint64_t> RateFactor(std::string_view unit) {
  if (!unit.ends_with("ps") && !unit.ends_with("/s")) return std::nullopt;
  unit.remove_suffix(2);
  if (!unit.ends_with('b') && !unit.ends_with('B')) return std::nullopt;
  const uint64_t bits = unit.back() == 'B' ? 8 : 1;
  unit.remove_suffix(1);
  const auto factor = FindFactor(kDecimalPrefixes, unit);
  if (!factor) return std::nullopt;
  return *factor * bits;
}

std::optional<uint64_t> BytesFactor(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  for (const std::string_view suffix : {"iB", "B"}) {
    if (unit.ends_with(suffix)) {
      unit.remove_suffix(suffix.size());
      break;
    }
  }
  return FindFactor(kBinaryPrefixes, unit);
}

constexpr uint64_t kDurationMaxPs = static_cast<uint64_t>(kNeverPs) - 1;

}  // namespace

std::optional<int64_t> ParseDurationPs(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity) return std::nullopt;
  const auto factor = DurationFactor(quantity->unit);
  if (!factor) return std::nullopt;
  const auto ps = Scale(*quantity, *factor, kDurationMaxPs);
  if (!ps) return std::nullopt;
  return static_cast<int64_t>(*ps);
}

std::optional<uint64_t> ParseRateBps(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity) return std::nullopt;
  const auto factor = RateFactor(quantity->unit);
  if (!factor) return std::nullopt;
  return Scale(*quantity, *factor, UINT64_MAX);
}

std::optional<uint64_t> ParseBytes(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity) return std::nullopt;
  const auto factor = BytesFactor(quantity->unit);
  if (!factor) return std::nullopt;
  return Scale(*quantity, *factor, UINT64_MAX);
}

std::string WhyNoDuration(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity || quantity->unit.empty() || ParseDurationPs(text)) {
    return fmt::format("is not a duration (expected {})", kExpectedDuration);
  }
  const auto factor = DurationFactor(quantity->unit);
  if (!factor) return "has an unknown unit (expected ps, ns, us, ms, s, min or h)";
  return WhyOutOfRange(*quantity, *factor, kDurationMaxPs, "2562h", "picoseconds");
}

std::string WhyNoRate(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity || quantity->unit.empty() || ParseRateBps(text)) {
    return fmt::format("is not a data rate (expected {})", kExpectedRate);
  }
  const auto factor = RateFactor(quantity->unit);
  if (!factor) {
    return "has an unknown unit (expected bps, Kbps, Mbps, Gbps or Tbps, or for bytes Bps to TBps)";
  }
  return WhyOutOfRange(*quantity, *factor, UINT64_MAX, "18446744Tbps", "bits per second");
}

std::string WhyNoBytes(std::string_view text) {
  const auto quantity = SplitQuantity(text);
  if (!quantity || ParseBytes(text)) {
    return fmt::format("is not a size (expected {})", kExpectedBytes);
  }
  const auto factor = BytesFactor(quantity->unit);
  if (!factor) return "has an unknown unit (expected B, KiB, MiB, GiB, TiB or PiB)";
  return WhyOutOfRange(*quantity, *factor, UINT64_MAX, "16383PiB", "bytes");
}

std::string FormatDuration(int64_t ps) {
  static constexpr std::array kUnits = {
      Unit{"ps", 1},        Unit{"ns", kPsPerNs},    Unit{"us", kPsPerUs},
      Unit{"ms", kPsPerMs}, Unit{"s", kPsPerSecond},
  };
  if (ps == 0) return "0 s";
  const uint64_t magnitude = ps < 0 ? 0 - static_cast<uint64_t>(ps) : static_cast<uint64_t>(ps);
  const std::string text = FormatScaled(magnitude, kUnits);
  return ps < 0 ? fmt::format("-{}", text) : text;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr std::array kUnits = {
      Unit{"B", 1},
      Unit{"KiB", 1ULL << 10},
      Unit{"MiB", 1ULL << 20},
      Unit{"GiB", 1ULL << 30},
      Unit{"TiB", 1ULL << 40},
      Unit{"PiB", 1ULL << 50},
      Unit{"EiB", 1ULL << 60},
  };
  return FormatScaled(bytes, kUnits);
}

std::string FormatRate(uint64_t rate_bps) {
  static constexpr std::array kUnits = {
      Unit{"B/s", 8},
      Unit{"KB/s", 8 * PowerOfTen(3)},
      Unit{"MB/s", 8 * PowerOfTen(6)},
      Unit{"GB/s", 8 * PowerOfTen(9)},
      Unit{"TB/s", 8 * PowerOfTen(12)},
  };
  return FormatScaled(rate_bps, kUnits);
}

}  // namespace railyard
