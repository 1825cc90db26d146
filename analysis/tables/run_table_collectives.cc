// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "analysis/metrics/run_metrics.h"
#include "analysis/tables/figure_text.h"
#include "analysis/tables/text_table.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr size_t kSlowestShown = 8;
constexpr size_t kAlgorithmsShown = 8;
constexpr size_t kMeasuredShown = 12;

void PrintKinds(const RunResult& result, TerminalText& text) {
  text.Section("Collectives by kind");
  TextTable table({{"kind", Align::kLeft},
                   {"count"},
                   {"bytes"},
                   {"median duration"},
                   {"longest"},
                   {"median busbw"},
                   {"median stretch"},
                   {"largest"}});
  for (const CollectiveTotals& totals : TotalsByKind(result)) {
    const auto& durations = totals.durations;
    const auto& stretches = totals.stretches;
    table.AddRow(
        {ToTerminalText(totals.kind, 14), CountText(totals.count), FormatBytes(totals.bytes),
         DurationText(durations ? std::optional(durations->p50_ps) : std::nullopt),
         DurationText(durations ? std::optional(durations->max_ps) : std::nullopt),
         totals.busbw_GBps ? BusbwText(totals.busbw_GBps->p50) + " GB/s" : std::string(kAbsentText),
         StretchText(stretches ? std::optional(stretches->p50) : std::nullopt),
         StretchText(stretches ? std::optional(stretches->max) : std::nullopt)});
  }
  text.Table(table);
  const auto unfinished =
      std::count_if(result.collectives.begin(), result.collectives.end(),
                    [](const CollectiveResult& collective) { return !collective.completed; });
  if (unfinished > 0) {
    text.Paragraph(fmt::format("{} did not complete: without duration, busbw and stretch.",
                               PluralText(static_cast<uint64_t>(unfinished), "collective")));
  }
}

// Prints the sizes with the most measured time first.
void PrintMeasured(const RunResult& result, TerminalText& text) {
  std::vector<MeasuredTotals> sizes = TotalsOfMeasured(result);
  if (sizes.empty()) return;
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const MeasuredTotals& a, const MeasuredTotals& b) {
                     return static_cast<double>(a.measured_p50_ps) * static_cast<double>(a.count) >
                            static_cast<double>(b.measured_p50_ps) * static_cast<double>(b.count);
                   });
  text.Section("Simulated and measured durations");
  TextTable table({{"kind", Align::kLeft},
                   {"bytes"},
                   {"ranks"},
                   {"count"},
                   {"measured"},
                   {"simulated"},
                   {"median ratio"},
                   {"smallest"},
                   {"largest"}});
  const size_t shown = std::min(sizes.size(), kMeasuredShown);
  for (const MeasuredTotals& totals : std::span(sizes).first(shown)) {
    table.AddRow({ToTerminalText(totals.kind, 14), FormatBytes(totals.bytes),
                  CountText(totals.rank_count), CountText(totals.count),
                  FormatDuration(totals.measured_p50_ps), FormatDuration(totals.simulated_p50_ps),
                  StretchText(totals.ratios.p50), StretchText(totals.ratios.min),
                  StretchText(totals.ratios.max)});
  }
  text.Table(table);
  text.AndMore(sizes.size() - shown, "size", "summary.json");
  const RateStatistics all = *MeasuredRatios(result);
  text.Paragraph(fmt::format(
      "Ratio: simulated, from the last rank's start, over the shortest that a rank measured. All "
      "sizes together: median {}, {} to {}.",
      StretchText(all.p50), StretchText(all.min), StretchText(all.max)));
}

// Prints where the algorithms replayed differ from those in the log, for all collectives.
void PrintAlgorithms(const RunResult& result, TerminalText& text) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, uint64_t> counts;
  for (const CollectiveResult& collective : result.collectives) {
    if (collective.logged.empty() || collective.logged == collective.replayed) continue;
    ++counts[{collective.kind, collective.logged, collective.replayed}];
  }
  if (counts.empty()) return;
  text.Section("Replayed otherwise than logged");
  size_t shown = 0;
  for (const auto& [key, count] : counts) {
    if (shown == kAlgorithmsShown) break;
    ++shown;
    const auto& [kind, logged, replayed] = key;
    text.Item(fmt::format("{}: log: {}, replayed: {} ({})", kind, logged, replayed,
                          PluralText(count, "collective")));
  }
  text.AndMore(counts.size() - shown, "combination", "collectives.csv");
}

std::vector<size_t> SlowestFirst(const RunResult& result) {
  std::set<std::tuple<double, int64_t, size_t>> order;  // of the slowest so far
  for (size_t i = 0; i < result.collectives.size(); ++i) {
    const CollectiveResult& collective = result.collectives[i];
    if (!collective.completed) continue;
    const std::tuple place(-Stretch(result, collective).value_or(0), -collective.duration_ps(), i);
    if (order.size() == kSlowestShown && *order.rbegin() < place) continue;
    order.insert(place);
    if (order.size() > kSlowestShown) order.erase(std::prev(order.end()));
  }
  std::vector<size_t> indices;
  for (const auto& place : order) indices.push_back(std::get<2>(place));
  return indices;
}

void PrintSlowest(const RunResult& result, TerminalText& text) {
  const std::vector<size_t> slowest = SlowestFirst(result);
  if (slowest.empty()) return;
  text.Section("Slowest collectives, by stretch, then by duration");
  TextTable table({{"#"},
                   {"kind", Align::kLeft},
                   {"bytes"},
                   {"communicator", Align::kLeft},
                   {"start"},
                   {"duration"},
                   {"busbw GB/s"},
                   {"fault-free"},
                   {"stretch"}});
  for (const size_t index : slowest) {
    const CollectiveResult& c = result.collectives[index];
    const bool has_baseline = result.has_baseline && c.baseline_duration_ps != 0;
    table.AddRow({CountText(index), ToTerminalText(c.kind, 14), FormatBytes(c.bytes),
                  ToTerminalText(c.communicator, 18), TimeText(c.first_start_ps),
                  FormatDuration(c.duration_ps()), BusbwText(BusbwGBps(c)),
                  DurationText(has_baseline ? std::optional(c.baseline_duration_ps) : std::nullopt),
                  StretchText(Stretch(result, c))});
    if (!c.logged.empty() && c.logged != c.replayed) {
      const std::string line = fmt::format("    log: {}, replayed: {}", c.logged, c.replayed);
      table.AddLine(ToTerminalText(line, kTerminalColumns));
    }
  }
  text.Table(table);
}

}  // namespace

void PrintCollectives(const RunResult& result, TerminalText& text) {
  PrintKinds(result, text);
  PrintMeasured(result, text);
  PrintAlgorithms(result, text);
  PrintSlowest(result, text);
}

}  // namespace railyard
