// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_settings.h"

#include <charconv>
#include <system_error>

namespace railyard {

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
  // NCCL_VERSION in src/nccl.h.in.
  const uint32_t major_weight = part[1] <= 8 ? 1000 : 10000;
  return part[0] * major_weight + part[1] * 100 + part[2];
}

}  // namespace railyard
