// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_comparison.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "analysis/tables/text_table.h"
#include "analysis/writers/json_writer.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/units/units.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/measures/network_flow.h"
#include "topologies/prices/network_cost.h"

namespace railyard {
namespace {

// This program with other arguments; its exit status, kExitEnvironment where a signal ended it.
int RunProcess(const std::vector<std::string>& arguments) {
  ChildProcess process;
  process.Start(arguments);
  const auto status = process.Wait();
  // The signal may have ended that process, too.
  if (!status || NotedInterruption() != 0) throw Interrupted(TakeInterruption());
  return *status < 128 ? *status : kExitEnvironment;
}

const rapidjson::Value& Find(const rapidjson::Value& object, const char* key) {
  if (object.IsObject()) {
    const auto found = object.FindMember(key);
    if (found != object.MemberEnd()) return found->value;
  }
  throw EnvironmentError(fmt::format("a run's summary.json has no {}", key));
}

void ReadSummary(const std::string& path, ComparedRun& run) {
  std::ifstream file(path);
  if (!file) return;
  std::ostringstream text;
  text << file.rdbuf();
  rapidjson::Document summary;
  summary.Parse(text.str().c_str());
  run.status = Find(summary, "status").GetString();
  run.simulated_time_ps = Find(summary, "simulated_time_ps").GetInt64();
  const rapidjson::Value& stretch = Find(Find(Find(summary, "collectives"), "stretch"), "max");
  if (stretch.IsNumber()) run.stretch_max = stretch.GetDouble();
  const rapidjson::Value& payload = Find(summary, "payload");
  run.left_server_share = Find(payload, "left_server_share").GetDouble();
  run.reached_spine_share = Find(payload, "reached_spine_share").GetDouble();
  for (const rapidjson::Value& tier : Find(summary, "tiers").GetArray()) {
    run.tiers.push_back({.tier = Find(tier, "tier").GetString(),
                         .payload_bytes = Find(tier, "payload_bytes").GetUint64()});
  }
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

}  // namespace

ComparedRun RunOnFabric(const FabricGraph& fabric, const std::string& scenario,
                        const std::vector<std::string>& sets, const Prices& prices) {
  const NetworkCost cost = CostOf(fabric, prices);
  ComparedRun run = {.fabric = fabric.name,
                     .gpus = static_cast<uint32_t>(fabric.gpus().size()),
                     .bisection_bps = BisectionAtStart(fabric),
                     .network_cost = cost.cost,
                     .network_watts = cost.watts,
                     .currency = prices.currency,
                     .status = {},
                     .tiers = {}};
  for (DeviceId id = 0; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind == DeviceKind::kSwitch) ++run.switches;
  }
  for (const Cable& cable : fabric.cables()) {
    if (!IsInServer(fabric.link(cable.forward).tier)) ++run.network_cables;
  }
  const TemporaryDirectory directory;
  WriteOutput(directory.File("fabric.textproto"), ToTopologyText(fabric));
  std::vector<std::string> arguments = {"run", scenario, "--quiet", "--out",
                                        directory.File("result")};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  arguments.insert(arguments.end(), {"--set", fmt::format("fabric={{file: \"{}\"}}",
                                                          directory.File("fabric.textproto"))});
  const int status = RunProcess(arguments);
  run.exit_status = static_cast<ExitStatus>(status);
  ReadSummary(directory.File("result/summary.json"), run);
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
    table.AddRow(
        {run.fabric, fmt::format("{}", run.gpus), fmt::format("{}", run.switches),
         fmt::format("{}", run.network_cables), FormatRate(run.bisection_bps),
         fmt::format("{:.0f}", run.network_cost), fmt::format("{:.1f}", run.network_watts / 1'000),
         has_result ? run.status : fmt::format("exit {}", int{run.exit_status}),
         shown(FormatDuration(run.simulated_time_ps)),
         shown(fmt::format("{:.4g}", run.stretch_max)),
         shown(FormatBytes(PayloadOf(run, Tier::kNvlink))), shown(FormatBytes(NetworkBytes(run))),
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
    json.Real("network_cost", run.network_cost);
    json.Text("currency", run.currency);
    json.Real("network_watts", run.network_watts);
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
