// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_comparison.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "analysis/metrics/run_metrics.h"
#include "analysis/tables/text_table.h"
#include "analysis/writers/json_writer.h"
#include "railyard/result.h"
#include "railyard/run.h"
#include "railyard/scenario_builder.h"
#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/forked_copies.h"
#include "simulator/scenario/models/calibration_loader.h"
#include "simulator/units/units.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/graph/fabric_copy.h"
#include "topologies/measures/network_flow.h"
#include "topologies/prices/network_cost.h"

namespace railyard {
namespace {

// The part of a ComparedRun that its run tells.
void Put(const ComparedRun& run, Handover& to) {
  to.Put(run.status);
  to.Put(run.simulated_time_ps);
  to.Put(run.stretch_max);
  to.Put(run.left_server_share);
  to.Put(run.reached_spine_share);
  to.Put(uint64_t{run.tiers.size()});
  for (const ComparedRun::TierBytes& tier : run.tiers) {
    to.Put(tier.tier);
    to.Put(tier.payload_bytes);
  }
}

bool Take(Handover& from, ComparedRun& run) {
  uint64_t tiers = 0;
  const bool has_figures = from.Take(run.status) && from.Take(run.simulated_time_ps) &&
                           from.Take(run.stretch_max) && from.Take(run.left_server_share) &&
                           from.Take(run.reached_spine_share) && from.Take(tiers);
  for (uint64_t i = 0; has_figures && i < tiers; ++i) {
    ComparedRun::TierBytes& tier = run.tiers.emplace_back();
    if (!from.Take(tier.tier) || !from.Take(tier.payload_bytes)) return false;
  }
  return has_figures;
}

ExitStatus RunHere(const ScenarioBuilder& builder, ComparedRun& run) {
  Diagnostics diagnostics;
  const auto scenario = builder.Build(diagnostics);
  if (!scenario) {
    diagnostics.Note({.file = run.fabric}, "", "is the fabric on which this is wrong");
    fmt::print(stderr, "{}", diagnostics.ToString());
    return kExitInput;
  }
  const Result result = Run(*scenario);
  run.status = RunStatusName(result.status);
  run.simulated_time_ps = result.simulated_time_ps;
  if (const auto stretches = TotalOfCollectives(result).stretches) run.stretch_max = stretches->max;
  run.left_server_share = Share(result.payload_left_server_bytes, result.payload_bytes);
  run.reached_spine_share = Share(result.payload_reached_spine_bytes, result.payload_bytes);
  for (const TierTotals& tier : TotalsByTier(result)) {
    run.tiers.push_back({.tier = std::string(tier.tier), .payload_bytes = tier.payload_bytes});
  }
  return ExitStatusOf(result.status);
}

ExitStatus RunOrPrintError(const ScenarioBuilder& builder, ComparedRun& run) {
  try {
    return RunHere(builder, run);
  } catch (const EnvironmentError& error) {
    PrintError(fmt::format("{}: {}", run.fabric, error.what()));
  } catch (const std::bad_alloc&) {
    PrintError(fmt::format("{}: not enough memory", run.fabric));
  }
  return kExitEnvironment;
}

// Runs in a forked copy of this process, which has the fabric in memory and releases the memory of
// the run when it ends.
void RunInCopy(const ScenarioBuilder& builder, ComparedRun& run) {
  RunInCopies(
      1, 1,
      [&](size_t /*index*/, Handover& to) {
        ComparedRun outcome;
        outcome.fabric = run.fabric;
        to.Put(RunOrPrintError(builder, outcome));
        Put(outcome, to);
      },
      [&run](const EndedCopy& copy) {
        run.exit_status = kExitEnvironment;
        if (copy.status >= 128) return;
        if (!copy.handover.Take(run.exit_status) || !Take(copy.handover, run)) {
          throw EnvironmentError("a run ended without a result");
        }
      });
}

bool IsInServer(Tier tier) { return tier == Tier::kNvlink || tier == Tier::kHost; }

uint64_t PayloadOf(const ComparedRun& run, Tier tier) {
  for (const ComparedRun::TierBytes& bytes : run.tiers) {
    if (bytes.tier == TierName(tier)) return bytes.payload_bytes;
  }
  return 0;
}

// Bytes on the cables of the network, counted once per cable crossed.
uint64_t NetworkBytes(const ComparedRun& run) {
  uint64_t sum = 0;
  for (int i = 0; i < kTierCount; ++i) {
    if (!IsInServer(static_cast<Tier>(i))) sum += PayloadOf(run, static_cast<Tier>(i));
  }
  return sum;
}

uint64_t BisectionAtStart(const FabricGraph& fabric) {
  return fabric.circuits ? BisectionBps(AtSlot(fabric, 0)) : BisectionBps(fabric);
}

// Lists the tiers that any of the runs has.
std::string TierTable(const std::vector<ComparedRun>& runs) {
  std::vector<Tier> tiers;
  for (int i = 0; i < kTierCount; ++i) {
    const auto tier = static_cast<Tier>(i);
    const bool is_used = std::any_of(runs.begin(), runs.end(), [tier](const ComparedRun& run) {
      return std::any_of(run.tiers.begin(), run.tiers.end(),
                         [tier](const auto& bytes) { return bytes.tier == TierName(tier); });
    });
    if (is_used) tiers.push_back(tier);
  }
  std::vector<TextColumn> columns = {{"fabric", Align::kLeft}};
  for (const Tier tier : tiers) columns.push_back({std::string(TierName(tier))});
  TextTable table(columns);
  for (const ComparedRun& run : runs) {
    std::vector<std::string> cells = {run.fabric};
    for (const Tier tier : tiers) {
      const bool has_tier =
          std::any_of(run.tiers.begin(), run.tiers.end(),
                      [tier](const auto& bytes) { return bytes.tier == TierName(tier); });
      cells.push_back(has_tier ? FormatBytes(PayloadOf(run, tier)) : "-");
    }
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

// Sets the factors of a calibrated platform, as it does where a scenario names the platform.
// Returns why it cannot; empty: done.
std::string ApplyCalibration(const PlatformCalibration& calibration, ScenarioBuilder& builder) {
  if (calibration == PlatformCalibration()) return {};
  for (const auto& [name, factor] : FactorsOf(calibration)) {
    const std::string field = fmt::format("gpu.{}", name);
    if (builder.Has(field)) {
      return fmt::format(
          "{} stands beside the calibration of the platform (expected one of the two)", field);
    }
    builder.Set(field, factor);
  }
  return {};
}

void RealOrNull(JsonWriter& json, const char* key, bool has_value, double value) {
  if (has_value) {
    json.Real(key, value);
  } else {
    json.Null(key);
  }
}

// Returns whether a total is of any part of the network.
bool IsCounted(const NetworkCost& cost, bool PartCost::*has) {
  return cost.parts.empty() || std::ranges::any_of(cost.parts, has);
}

// "not counted" if the prices have none for any part of the network.
std::string TotalOf(bool is_counted, const std::string& total) {
  return is_counted ? total : "not counted";
}

}  // namespace

ComparedRun RunOnFabric(const ShownFabric& shown, const std::string& scenario,
                        std::vector<std::string> sets, const Prices& prices) {
  const FabricGraph& fabric = shown.graph;
  const NetworkCost cost = CostOf(fabric, prices);
  ComparedRun run = {.fabric = fabric.name,
                     .gpus = static_cast<uint32_t>(fabric.gpus().size()),
                     .bisection_bps = BisectionAtStart(fabric),
                     .network_cost = cost.cost,
                     .network_watts = cost.watts,
                     .has_cost = IsCounted(cost, &PartCost::has_cost),
                     .has_watts = IsCounted(cost, &PartCost::has_watts),
                     .currency = prices.currency,
                     .status = {},
                     .tiers = {}};
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind == DeviceKind::kSwitch) ++run.switches;
  }
  for (const Cable& cable : fabric.cables()) {
    if (!IsInServer(fabric.link(cable.forward).tier)) ++run.network_cables;
  }
  sets.emplace_back("fabric=");
  ScenarioBuilder builder = ScenarioBuilder::Read(scenario, sets);
  if (std::string why = ApplyCalibration(shown.calibration, builder); !why.empty()) {
    PrintError(fmt::format("{} on {}: {}", scenario, fabric.name, why));
    run.exit_status = kExitInput;
    return run;
  }
  RunInCopy(builder.Fabric(std::make_shared<const FabricGraph>(CopyOf(fabric))), run);
  return run;
}

std::string ComparisonTable(const std::vector<ComparedRun>& runs) {
  TextTable table({{"fabric", Align::kLeft},
                   {"GPUs"},
                   {"switches"},
                   {"cables"},
                   {"bisection"},
                   {runs.empty() ? "cost" : "cost " + runs.front().currency},
                   {"kW"},
                   {"status", Align::kLeft},
                   {"time"},
                   {"largest stretch"},
                   {"NVLink bytes"},
                   {"network bytes"},
                   {"left server"},
                   {"reached spine"}});
  for (const ComparedRun& run : runs) {
    const bool has_result = !run.status.empty();
    const auto shown = [&](std::string text) { return has_result ? std::move(text) : "-"; };
    table.AddRow({run.fabric, fmt::format("{}", run.gpus), fmt::format("{}", run.switches),
                  fmt::format("{}", run.network_cables), FormatRate(run.bisection_bps),
                  TotalOf(run.has_cost, fmt::format("{:.0f}", run.network_cost)),
                  TotalOf(run.has_watts, fmt::format("{:.1f}", run.network_watts / 1'000)),
                  has_result ? run.status : fmt::format("exit {}", int{run.exit_status}),
                  shown(FormatDuration(run.simulated_time_ps)),
                  shown(fmt::format("{:.4g}", run.stretch_max)),
                  shown(FormatBytes(PayloadOf(run, Tier::kNvlink))),
                  shown(FormatBytes(NetworkBytes(run))),
                  shown(fmt::format("{:.1f} %", 100 * run.left_server_share)),
                  shown(fmt::format("{:.1f} %", 100 * run.reached_spine_share))});
  }
  return table.ToString() + "\nPayload per tier, counted once per link crossed\n" + TierTable(runs);
}

std::string ComparisonJson(const std::vector<ComparedRun>& runs) {
  JsonWriter json;
  json.StartArray();
  for (const ComparedRun& run : runs) {
    json.StartObject();
    json.Text("fabric", run.fabric);
    json.Number("gpus", run.gpus);
    json.Number("switches", run.switches);
    json.Number("network_cables", run.network_cables);
    json.Number("bisection_bytes_per_s", run.bisection_bps / 8);
    RealOrNull(json, "network_cost", run.has_cost, run.network_cost);
    json.Text("currency", run.currency);
    RealOrNull(json, "network_watts", run.has_watts, run.network_watts);
    json.Number("exit_status", static_cast<uint64_t>(run.exit_status));
    if (!run.status.empty()) {
      json.Text("status", run.status);
      json.Number("simulated_time_ps", static_cast<uint64_t>(run.simulated_time_ps));
      json.Real("stretch_max", run.stretch_max);
      json.Real("left_server_share", run.left_server_share);
      json.Real("reached_spine_share", run.reached_spine_share);
      json.StartArray("tiers");
      for (const ComparedRun::TierBytes& tier : run.tiers) {
        json.StartObject();
        json.Text("tier", tier.tier);
        json.Number("payload_bytes", tier.payload_bytes);
        json.EndObject();
      }
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray();
  return json.Take();
}

}  // namespace railyard
