// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/traffic_loader.h"

#include <fmt/format.h>

#include "simulator/diagnostics/number_rows.h"

namespace railyard {
namespace {

constexpr size_t kRowsMax = 10'000'000;
constexpr uint64_t kBytesMax = uint64_t{1} << 60;

}  // namespace

std::optional<std::vector<GpuTraffic>> LoadTraffic(const std::string& path, uint64_t gpus,
                                                   Diagnostics& diagnostics) {
  std::vector<GpuTraffic> traffic;
  const auto add = [&](const std::vector<uint64_t>& row) {
    if (traffic.size() == kRowsMax) {
      return fmt::format("too many rows (expected at most {})", kRowsMax);
    }
    traffic.push_back({.source = static_cast<uint32_t>(row[0]),
                       .destination = static_cast<uint32_t>(row[1]),
                       .bytes = row[2]});
    return std::string();
  };
  const std::vector<NumberColumn> columns = {
      {"source_gpu", gpus - 1}, {"destination_gpu", gpus - 1}, {"payload_bytes", kBytesMax}};
  if (!ReadNumberRows(path, columns, add, diagnostics)) return std::nullopt;
  return traffic;
}

}  // namespace railyard
