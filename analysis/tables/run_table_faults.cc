// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/run_table_faults.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "analysis/metrics/run_metrics.h"
#include "analysis/tables/figure_text.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr size_t kFaultsShown = 16;
constexpr size_t kNamesShown = 3;
constexpr double kShareShown = 0.01;

bool HasBegun(const FaultResult& fault) { return fault.begins > 0; }

// Precondition: it has begun.
std::string WhenText(const FaultResult& fault) {
  const std::string from = FormatDuration(fault.from_ps);
  if (fault.begins > 1) {
    return fmt::format("{} times from {} on", CountText(fault.begins), from);
  }
  if (fault.until_ps == kNeverPs) return fmt::format("from {} until the end", from);
  return fmt::format("from {} to {}", from, FormatDuration(fault.until_ps));
}

std::string RecoveryText(const FaultResult& fault) {
  if (fault.ranks_hit == 0) return "nothing to recover from";
  const std::string retransmission =
      fault.first_retransmission_ps < 0
          ? "nothing sent again"
          : "first retransmission at " + FormatDuration(fault.first_retransmission_ps);
  if (fault.time_to_recover_ps < 0) return retransmission + ", never recovered";
  return fmt::format("{}, recovered {} after the fault began", retransmission,
                     FormatDuration(fault.time_to_recover_ps));
}

// Prints stretches before, during and after the fault; nothing without a fault-free run.
void PrintStretches(const RunResult& result, const FaultResult& fault, TerminalText& text) {
  const StretchesAroundFault around = StretchesAround(result, fault);
  std::string line;
  const auto add = [&line](const char* when, const std::optional<StretchStatistics>& stretches) {
    if (!stretches) return;
    line += fmt::format("{}{} {}", line.empty() ? "largest stretch " : ", ", when,
                        StretchText(stretches->max));
  };
  add("before it", around.before);
  add("during", around.during);
  add("after", around.after);
  if (!line.empty()) text.Detail(line);
}

// Prints the added time of collectives by cause; nothing if no time was added.
void PrintAdded(const AddedTime& added, TerminalText& text) {
  struct Part {
    const char* name;
    int64_t time_ps;
  };
  std::vector<Part> parts = {{"queueing", added.queueing_ps},
                             {"retransmission", added.retransmission_ps},
                             {"time-outs", added.timeout_ps},
                             {"rerouting", added.rerouting_ps},
                             {"slow or late peers", added.slow_peer_ps},
                             {"other", added.other_ps}};
  int64_t sum_ps = 0;
  for (const Part& part : parts) sum_ps += part.time_ps;
  if (sum_ps == 0) return;
  if (sum_ps < 0) {
    text.Detail("collectives took " + FormatDuration(-sum_ps) + " less");
    return;
  }
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.time_ps > b.time_ps; });
  std::string line = "collectives took " + FormatDuration(sum_ps) + " longer:";
  // The parts that are shown add up to the whole but for those too small to matter.
  for (const Part& part : parts) {
    const double share = static_cast<double>(part.time_ps) / static_cast<double>(sum_ps);
    if (std::abs(share) < kShareShown) continue;
    line += fmt::format("{} {}{} {}", line.back() == ':' ? "" : ",", share < 0 ? "less " : "",
                        part.name, PercentText(std::abs(share)));
  }
  text.Detail(line);
}

void PrintFault(const RunResult& result, const FaultResult& fault, TerminalText& text) {
  text.Item(fmt::format("{}: {} on {}, {}", fault.name, fault.kind, fault.target, WhenText(fault)));
  text.Detail(fmt::format("lost {}, hit {} and {}", PluralText(fault.dropped_packets, "packet"),
                          PluralText(fault.collectives.size(), "collective"),
                          PluralText(fault.ranks_hit, "rank")));
  text.Detail(RecoveryText(fault));
  PrintStretches(result, fault, text);
}

// Faults that never began have nothing to say but that.
void PrintUnbegun(const RunResult& result, TerminalText& text) {
  std::vector<std::string> names;
  size_t count = 0;
  for (const FaultResult& fault : result.faults) {
    if (HasBegun(fault)) continue;
    if (count++ < kNamesShown) names.push_back(fault.name);
  }
  if (count == 0) return;
  text.Item(fmt::format("{} never began: {}{}", PluralText(count, "fault"), fmt::join(names, ", "),
                        count > kNamesShown ? ", …" : ""));
}

}  // namespace

void PrintFaults(const RunResult& result, TerminalText& text) {
  if (result.faults.empty() && result.drops.empty()) return;
  text.Section("Faults and losses");
  const std::vector<AddedTime> added = AddedByFaults(result);
  size_t begun = 0;
  for (size_t i = 0; i < result.faults.size(); ++i) {
    if (!HasBegun(result.faults[i]) || ++begun > kFaultsShown) continue;
    PrintFault(result, result.faults[i], text);
    if (!added.empty()) PrintAdded(added[i], text);
  }
  text.AndMore(begun - std::min(begun, kFaultsShown), "fault");
  PrintUnbegun(result, text);
  for (const DropResult& drop : result.drops) {
    text.Item(fmt::format("dropped for {}: {} ({})", drop.reason,
                          PluralText(drop.packets, "packet"), FormatBytes(drop.bytes)));
  }
  if (result.drops.empty()) text.Item("no packet was dropped");
}

}  // namespace railyard
