// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes quantities. Inside Railyard a quantity is an integer whose unit is in its name:
// times are picoseconds (`_ps`), rates bits per second (`_bps`), sizes bytes (`_bytes`). This
// header is the only place that reads them from text, writes them for people, or multiplies bytes
// by 8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/units/never.h"  // IWYU pragma: export

namespace railyard {

inline constexpr int64_t kPsPerNs = 1'000;
inline constexpr int64_t kPsPerUs = 1'000'000;
inline constexpr int64_t kPsPerMs = 1'000'000'000;
inline constexpr int64_t kPsPerSecond = 1'000'000'000'000;

// Returns the time to serialise `bytes` at `rate_bps`, rounded up to the picosecond; it uses
// 128-bit arithmetic if 64 bits could overflow. Preconditions: rate_bps > 0; the result fits 63
// bits.
constexpr int64_t TransferTimePs(uint64_t bytes, uint64_t rate_bps) {
  constexpr uint64_t kBitsPsPerByteSecond = 8 * uint64_t{kPsPerSecond};
  if (bytes <= 1'000'000 && rate_bps <= UINT64_MAX / 2) {
    return static_cast<int64_t>((bytes * kBitsPsPerByteSecond + rate_bps - 1) / rate_bps);
  }
  const auto bit_ps = static_cast<unsigned __int128>(bytes) * 8 * kPsPerSecond;
  return static_cast<int64_t>((bit_ps + rate_bps - 1) / rate_bps);
}

// These read quantities that people write: digits, optionally a decimal part, at most one space,
// the unit. They are exact: "4.096us" is 4,096,000 ps, and they refuse text finer than the
// picosecond, bit per second or byte, an unknown unit, a sign, trailing text, more than 20
// significant digits and overflow. They return nullopt for refused text, and quantity_errors.h says
// why; the Expected* strings describe the right form. A unit's case matters (b is a bit, B a byte),
// except that k may be K, and that sizes take their prefix in either case.
//   Durations: ps ns us ms s min h, below kNeverPs; the unit is required, also for 0.
//   Rates: bps Kbps Mbps Gbps Tbps (bits) and Bps KBps MBps GBps TBps (bytes), powers of 1,000;
//     b/s and B/s may stand for bps and Bps; the unit is required.
//   Sizes: B, K M G T P, KB … PB, KiB … PiB, always powers of 1,024; bytes without a unit.
std::optional<int64_t> ParseDurationPs(std::string_view text);  // "300ms", "4.096us", "0s"
std::optional<uint64_t> ParseRateBps(std::string_view text);    // "400Gbps", "450GBps" (bytes/s)
std::optional<uint64_t> ParseBytes(std::string_view text);      // "64MiB", "64M", "4096B", "4096"
inline constexpr std::string_view kExpectedDuration = R"(a duration with its unit, e.g. "300ms")";
inline constexpr std::string_view kExpectedRate = R"(a data rate with its unit, e.g. "400Gbps")";
inline constexpr std::string_view kExpectedBytes =
    R"(a size, e.g. "64MiB" (K, M, G are powers of 1,024))";

// These format quantities for people: three significant digits without trailing zeros, and a unit;
// the integer part is never shortened ("4.29 s", "1.25 us", "1023 KiB"). Rates are in bytes per
// second, powers of 1,000, as collective libraries report them ("391 GB/s").
std::string FormatDuration(int64_t ps);
std::string FormatBytes(uint64_t bytes);
std::string FormatRate(uint64_t rate_bps);

}  // namespace railyard
