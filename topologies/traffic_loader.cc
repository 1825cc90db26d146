// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/traffic_loader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

constexpr size_t kMostRows = 10'000'000;
constexpr size_t kMostLineBytes = 4'096;
constexpr int kMostFindings = 100;
constexpr std::array<std::string_view, 3> kColumns = {"source_gpu", "destination_gpu",
                                                      "payload_bytes"};

std::vector<std::string> Cells(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '"') {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace

std::optional<std::vector<GpuTraffic>> LoadTraffic(const std::string& path, uint64_t gpus,
                                                   Diagnostics& diagnostics) {
  std::ifstream file(path);
  if (!file) throw EnvironmentError(fmt::format("cannot read {}", path));
  int number = 0;
  int errors = 0;
  const auto error = [&](std::string what) {
    if (++errors <= kMostFindings) {
      diagnostics.Error({.file = path, .line = number, .column = 0}, "", std::move(what));
    }
  };
  std::array<size_t, 3> column = {};
  size_t columns = 0;
  std::vector<GpuTraffic> traffic;
  std::string line;
  while (errors < kMostFindings && std::getline(file, line)) {
    ++number;
    if (line.size() > kMostLineBytes || traffic.size() > kMostRows) {
      error(fmt::format("too long (expected lines of {} bytes and {} rows at most)", kMostLineBytes,
                        kMostRows));
      break;
    }
    const std::vector<std::string> cells = Cells(line);
    if (number == 1) {
      columns = cells.size();
      for (size_t i = 0; i < kColumns.size(); ++i) {
        const auto found = std::find(cells.begin(), cells.end(), kColumns[i]);
        if (found == cells.end()) {
          error(fmt::format("there is no column {} (expected a run's pairs.csv)", kColumns[i]));
        }
        column[i] = static_cast<size_t>(found - cells.begin());
      }
      if (errors > 0) return std::nullopt;
      continue;
    }
    if (cells.size() != columns) {
      error(fmt::format("{} cells (expected {})", cells.size(), columns));
      continue;
    }
    std::array<uint64_t, 3> value = {};
    bool is_right = true;
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const std::string& cell = cells[column[i]];
      const uint64_t most = i == 2 ? uint64_t{1} << 60 : gpus - 1;
      const auto [stop, failure] =
          std::from_chars(cell.data(), cell.data() + cell.size(), value[i]);
      if (failure == std::errc() && stop == cell.data() + cell.size() && value[i] <= most) continue;
      error(fmt::format("{} {} (expected a number from 0 to {})", kColumns[i], Quote(cell), most));
      is_right = false;
    }
    if (!is_right) continue;
    traffic.push_back({.source = static_cast<uint32_t>(value[0]),
                       .destination = static_cast<uint32_t>(value[1]),
                       .bytes = value[2]});
  }
  if (number == 0) error("the file is empty (expected a run's pairs.csv)");
  if (errors > 0) return std::nullopt;
  return traffic;
}

}  // namespace railyard
