// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/scoreboard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

// Beginnings of the classes of sizes.
constexpr std::array<uint64_t, 5> kClasses = {0, 64u << 10, 1u << 20, 16u << 20, 256u << 20};

size_t ClassOf(uint64_t bytes) {
  const auto after = std::ranges::upper_bound(kClasses, bytes);
  return static_cast<size_t>(after - kClasses.begin()) - 1;
}

std::string ClassName(size_t number) {
  if (number == 0) return "below " + FormatBytes(kClasses[1]);
  if (number + 1 == kClasses.size()) return "from " + FormatBytes(kClasses[number]);
  return FormatBytes(kClasses[number]) + " to " + FormatBytes(kClasses[number + 1]);
}

// "LL128" of "RING/LL128"; a name without a protocol as it is.
std::string ProtocolOf(const std::string& replayed) {
  const size_t slash = replayed.rfind('/');
  return slash == std::string::npos ? replayed : replayed.substr(slash + 1);
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Score ScoreOf(const std::string& simulator, const std::vector<double>& errors) {
  return {.simulator = simulator,
          .rows = errors.size(),
          .median_abs_error = ErrorQuantile(errors, 0.5),
          .p90_abs_error = ErrorQuantile(errors, 0.9),
          .median_error = MedianOf(errors)};
}

// Errors by simulator, in the order of first appearance, which begins with this one.
class Errors {
 public:
  void Add(const std::string& simulator, double error) {
    const auto at = std::ranges::find(by_simulator_, simulator, &Entry::first);
    if (at == by_simulator_.end()) {
      by_simulator_.push_back({simulator, {error}});
    } else {
      at->second.push_back(error);
    }
  }
  std::vector<Score> Scores() const {
    std::vector<Score> scores;
    for (const auto& [simulator, errors] : by_simulator_) {
      scores.push_back(ScoreOf(simulator, errors));
    }
    return scores;
  }

 private:
  using Entry = std::pair<std::string, std::vector<double>>;
  std::vector<Entry> by_simulator_;
};

// Machine, collective, the whole choice that was replayed, and bytes: equal runs.
using SizeKey = std::tuple<std::string, std::string, std::string, uint64_t>;

// The spread of each size that several tables have, between the tables' median times.
std::map<SizeKey, double> SpreadsOf(
    const std::map<SizeKey, std::vector<const FidelityRow*>>& rows) {
  std::map<SizeKey, double> spreads;
  for (const auto& [key, of_size] : rows) {
    std::map<std::string, std::vector<double>> by_source;
    for (const FidelityRow* const row : of_size) {
      by_source[row->measured.source_id].push_back(row->measured.time_us);
    }
    if (by_source.size() < 2) continue;
    double least = INFINITY;
    double greatest = 0;
    for (const auto& entry : by_source) {
      const double time_us = MedianOf(entry.second);
      least = std::min(least, time_us);
      greatest = std::max(greatest, time_us);
    }
    spreads[key] = greatest / least - 1;
  }
  return spreads;
}

struct CellRows {
  Errors errors;
  std::set<std::string> sources;
  std::map<SizeKey, double> spreads;
};

}  // namespace

Scoreboard MakeScoreboard(const FidelityResult& result, const std::vector<OtherTime>& others) {
  std::map<size_t, std::vector<const OtherTime*>> others_of;  // by measured row
  for (const OtherTime& other : others) others_of[other.measured].push_back(&other);

  std::map<SizeKey, std::vector<const FidelityRow*>> by_size;
  for (const FidelityRow& row : result.rows) {
    by_size[{PointOf(row.measured).modelled_as, row.measured.collective, row.replayed,
             row.measured.bytes}]
        .push_back(&row);
  }
  const std::map<SizeKey, double> spreads = SpreadsOf(by_size);

  Scoreboard board;
  Errors totals;
  std::map<std::tuple<std::string, std::string, std::string, size_t>, CellRows> cells;
  for (const auto& [key, rows] : by_size) {
    const std::string& machine = std::get<0>(key);
    const std::string protocol = ProtocolOf(std::get<2>(key));
    const auto spread = spreads.find(key);
    CellRows& cell = cells[{machine, std::get<1>(key), protocol, ClassOf(std::get<3>(key))}];
    if (spread != spreads.end()) cell.spreads.insert(*spread);
    for (const FidelityRow* const row : rows) {
      cell.sources.insert(row->measured.source_id);
      const auto add = [&](const std::string& simulator, double simulated_us) {
        const double error = simulated_us / row->measured.time_us - 1;
        cell.errors.Add(simulator, error);
        totals.Add(simulator, error);
        board.rows.push_back(
            {.row = row,
             .machine = machine,
             .protocol = protocol,
             .simulator = simulator,
             .simulated_us = simulated_us,
             .spread = spread == spreads.end() ? std::nullopt : std::optional(spread->second)});
      };
      add(kThisSimulator, row->simulated_us);
      const auto found = others_of.find(row->input);
      if (found == others_of.end()) continue;
      for (const OtherTime* const other : found->second) add(other->simulator, other->time_us);
    }
  }
  for (const auto& [key, cell] : cells) {
    const auto& [machine, collective, protocol, number] = key;
    std::vector<double> of_sizes;
    for (const auto& entry : cell.spreads) of_sizes.push_back(entry.second);
    board.cells.push_back(
        {.machine = machine,
         .collective = collective,
         .protocol = protocol,
         .sizes = ClassName(number),
         .bytes_min = kClasses[number],
         .scores = cell.errors.Scores(),
         .sources = cell.sources.size(),
         .spread = of_sizes.empty() ? std::nullopt : std::optional(MedianOf(of_sizes))});
  }
  board.totals = totals.Scores();
  return board;
}

}  // namespace railyard
