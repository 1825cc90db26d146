// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_comparison_page.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "analysis/report/page_contents.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

bool HasResult(const ComparedRun& run) { return !run.status.empty(); }

StoredValue WholeNumber(uint64_t value) { return static_cast<int64_t>(value); }

// A column for each measure. Those of the run are empty where it has no result.
ChartTable MeasuresTable(const std::vector<ComparedRun>& runs, std::string name) {
  ChartTable table{.name = std::move(name),
                   .columns = {"fabric", "status", "simulated_time_ps", "stretch_max",
                               "network_cost", "network_watts", "bisection_bps", "gpus", "switches",
                               "network_cables", "left_server_share", "reached_spine_share"}};
  for (const ComparedRun& run : runs) {
    const auto of_run = [&run](StoredValue value) {
      return HasResult(run) ? std::move(value) : StoredValue();
    };
    table.rows.push_back(
        {run.fabric,
         HasResult(run) ? run.status
                        : fmt::format("no result, exit status {}", int{run.exit_status}),
         of_run(run.simulated_time_ps), of_run(run.stretch_max),
         run.has_cost ? run.network_cost : StoredValue(),
         run.has_watts ? run.network_watts : StoredValue(), WholeNumber(run.bisection_bps),
         WholeNumber(run.gpus), WholeNumber(run.switches), WholeNumber(run.network_cables),
         of_run(run.left_server_share), of_run(run.reached_spine_share)});
  }
  return table;
}

ChartTable TiersTable(const std::vector<ComparedRun>& runs, std::string name) {
  ChartTable table{.name = std::move(name), .columns = {"tier", "result", "payload_bytes"}};
  for (const ComparedRun& run : runs) {
    for (const ComparedRun::TierBytes& tier : run.tiers) {
      table.rows.push_back({tier.tier, run.fabric, WholeNumber(tier.payload_bytes)});
    }
  }
  return table;
}

// Says which fabric is the fastest, and which costs least, of those whose run completed.
std::string VerdictOnFabrics(const std::vector<ComparedRun>& runs) {
  const ComparedRun* fastest = nullptr;
  const ComparedRun* cheapest = nullptr;
  for (const ComparedRun& run : runs) {
    if (run.status != "COMPLETED") continue;
    if (fastest == nullptr || run.simulated_time_ps < fastest->simulated_time_ps) fastest = &run;
    if (cheapest == nullptr || run.network_cost < cheapest->network_cost) cheapest = &run;
  }
  if (fastest == nullptr) return "The job completed on none of the fabrics.";
  const std::string time = FormatDuration(fastest->simulated_time_ps);
  if (!fastest->has_cost || !cheapest->has_cost) {
    return fmt::format("{} is the fastest with {}; the prices have none of the networks' parts.",
                       fastest->fabric, time);
  }
  if (fastest == cheapest) {
    return fmt::format("{} is the fastest with {}, and costs least: {:.0f} {}.", fastest->fabric,
                       time, cheapest->network_cost, cheapest->currency);
  }
  return fmt::format(
      "{} is the fastest with {}; {} costs least, {:.0f} instead of {:.0f} {}, and takes {}.",
      fastest->fabric, time, cheapest->fabric, cheapest->network_cost, fastest->network_cost,
      cheapest->currency, FormatDuration(cheapest->simulated_time_ps));
}

}  // namespace

std::string FabricsPage(const std::vector<ComparedRun>& runs, const std::string& workload) {
  PageContents contents{.title = "Fabrics compared: Railyard report",
                        .subject = fmt::format("{} on {} fabrics", workload, runs.size()),
                        .provenance = "Cost and power are those of the network by the price file."};
  contents.verdict.push_back({.text = VerdictOnFabrics(runs)});
  for (const ComparedRun& run : runs) {
    contents.figures.push_back(
        {.label = run.fabric,
         .figure = {.text = HasResult(run) ? FormatDuration(run.simulated_time_ps) : "no result"}});
  }
  contents.charts.push_back({.id = "fabrics_measures",
                             .title = "Fabric by fabric",
                             .caption = "A panel for each measure; fabrics are in the order in "
                                        "which they were named.",
                             .tables = {MeasuresTable(runs, "fabrics_measures")}});
  contents.charts.push_back({.id = "fabrics_cost",
                             .title = "Time against cost",
                             .caption = fmt::format("Each point is a fabric: what its network "
                                                    "costs ({}), and the time of the job on it.",
                                                    runs.front().currency),
                             .tables = {MeasuresTable(runs, "fabrics_cost")}});
  contents.charts.push_back({.id = "compared_tiers",
                             .title = "Bytes per tier",
                             .caption = "Payload, counted once per link crossed.",
                             .tables = {TiersTable(runs, "compared_tiers")}});
  if (contents.charts.back().tables.front().rows.empty()) contents.charts.pop_back();
  return PageOf(contents);
}

}  // namespace railyard
