// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/nccl_version.h"

#include <charconv>
#include <system_error>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr uint32_t kWeightTo28 = 1'000;  // of the major version
constexpr uint32_t kWeightFrom29 = 10'000;

}  // namespace

std::optional<uint32_t> ParseNcclVersion(const std::string& text) {
  uint32_t part[3] = {0, 0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, part[i]);
    if (error != std::errc() || part[i] > 99) return std::nullopt;
    at = next;
    if (i < 2) {
      if (at == end || *at != '.') return std::nullopt;
      ++at;
    }
  }
  if (at != end && *at != '-' && *at != '+') return std::nullopt;
  if (part[0] != 2) return std::nullopt;
  return part[0] * (part[1] <= 8 ? kWeightTo28 : kWeightFrom29) + part[1] * 100 + part[2];
}

std::string NcclVersionText(uint64_t code) {
  const uint64_t weight = code < kWeightFrom29 ? kWeightTo28 : kWeightFrom29;
  return fmt::format("{}.{}.{}", code / weight, code % weight / 100, code % 100);
}

}  // namespace railyard
