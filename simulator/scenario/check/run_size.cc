// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/run_size.h"

#include <algorithm>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "simulator/execution/connections/connection.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

uint64_t MemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  uint64_t bytes = pages > 0 && page_bytes > 0
                       ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes)
                       : UINT64_MAX;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  }
  return bytes;
}

}  // namespace

std::string WhyTooLarge(uint64_t connections) {
  if (connections > kConnectionsMax) {
    return fmt::format(
        "its Sends, Recvs and exchanges open {} connections between GPUs or more (a run has at "
        "most {})",
        connections, kConnectionsMax);
  }
  const uint64_t bytes = connections * kConnectionBytesMin;
  const uint64_t available_bytes = MemoryBytes();
  if (bytes <= available_bytes) return "";
  return fmt::format(
      "its Sends, Recvs and exchanges open {} connections between GPUs or more, which take {} of "
      "memory "
      "or more (there is {})",
      connections, FormatBytes(bytes), FormatBytes(available_bytes));
}

}  // namespace railyard
