// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_description.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "analysis/writers/json_writer.h"
#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/routing/hop_counts.h"

namespace railyard {
namespace {

void WriteTiers(JsonWriter& json, const FabricMeasures& measures) {
  json.StartArray("links");
  for (const TierMeasures& tier : measures.tiers) {
    json.StartObject();
    json.Text("tier", TierName(tier.tier));
    json.Number("count", tier.count);
    json.Number("lanes", tier.lanes);
    json.Number("rate_bps_min", tier.rate_bps_min);
    json.Number("rate_bps_max", tier.rate_bps_max);
    json.Number("capacity_bytes_per_s", tier.capacity_bps / 8);
    json.Number("delay_ps_min", static_cast<uint64_t>(tier.delay_ps_min));
    json.Number("delay_ps_max", static_cast<uint64_t>(tier.delay_ps_max));
    json.EndObject();
  }
  json.EndArray();
}

void WriteSwitches(JsonWriter& json, const FabricMeasures& measures) {
  json.StartArray("radix");
  for (const RadixCount& radix : measures.radices) {
    json.StartObject();
    json.Number("ports", radix.ports);
    json.Number("switches", radix.switches);
    json.EndObject();
  }
  json.EndArray();
  json.StartArray("oversubscription");
  for (const Oversubscription& rung : measures.oversubscription) {
    json.StartObject();
    json.Text("lower", TierName(rung.lower));
    json.Text("upper", JoinTiers(rung.uppers, "+"));
    json.Real("worst", rung.worst);
    json.Text("switch", rung.worst_switch);
    json.EndObject();
  }
  json.EndArray();
}

void WritePreflight(JsonWriter& json, const std::vector<PreflightFinding>& findings) {
  json.StartArray("preflight");
  for (const PreflightFinding& finding : findings) {
    json.StartObject();
    json.Text("severity", PreflightSeverityName(finding.severity));
    json.Text("code", finding.code);
    json.Text("what", finding.what);
    json.EndObject();
  }
  json.EndArray();
}

// Returns e.g. "5 m": the delay beyond an FEC's 120 ns, at 5 ns a metre.
std::string LengthOf(int64_t delay_ps) {
  return delay_ps < kFecDelayPs
             ? ""
             : fmt::format("{:.3g} m", static_cast<double>(delay_ps - kFecDelayPs) /
                                           static_cast<double>(kDelayPsPerMetre));
}

bool IsOutsideServers(Tier tier) { return tier != Tier::kNvlink && tier != Tier::kHost; }

std::string TierLine(const TierMeasures& tier) {
  const std::string rate =
      tier.rate_bps_min == tier.rate_bps_max
          ? FormatRate(tier.rate_bps_min)
          : fmt::format("{} to {}", FormatRate(tier.rate_bps_min), FormatRate(tier.rate_bps_max));
  std::string delay = FormatDuration(tier.delay_ps_min);
  if (tier.delay_ps_max != tier.delay_ps_min) delay += " to " + FormatDuration(tier.delay_ps_max);
  if (IsOutsideServers(tier.tier) && !LengthOf(tier.delay_ps_min).empty()) {
    delay += fmt::format(" (about {})", LengthOf(tier.delay_ps_min));
  }
  return fmt::format("  {:<11}{:>8} cables of {}, {} in all, {}\n", TierName(tier.tier), tier.count,
                     rate, FormatRate(tier.capacity_bps), delay);
}

// Adds a finding for configurations of circuits in which GPUs have no path to each other.
void AddPartedSlots(const FabricGraph& fabric, std::vector<PreflightFinding>& findings) {
  const std::optional<uint32_t> slot = FindPartedSlot(fabric);
  if (!slot || *slot == 0) return;  // the first one has been looked at
  const FabricGraph at = AtSlot(fabric, *slot);
  const HopCounts hops = CountHops(at, {at.gpus().front()});
  findings.insert(
      findings.begin(),
      {PreflightSeverity::kError, "UNREACHABLE",
       fmt::format("in configuration {} of {} {} does not reach {}", *slot, fabric.circuits->slots,
                   at.device(hops.unreached_from).name, at.device(hops.unreached_to).name)});
}

// "1,234,567".
std::string Grouped(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string CostText(const TopoDescription& description) {
  const NetworkCost& cost = description.cost;
  std::string text =
      fmt::format("Network at the prices of {}: {} {}, {} W\n", description.prices.name,
                  Grouped(cost.cost), description.prices.currency, Grouped(cost.watts));
  for (const PartCost& part : cost.parts) {
    text += fmt::format("  {:<19}{:>8}", NetworkPartName(part.part), part.count);
    text += part.has_cost ? fmt::format("  {:>13}", Grouped(part.cost)) : "    not counted";
    text += part.has_watts ? fmt::format("  {:>9} W\n", Grouped(part.watts)) : "  not counted\n";
  }
  return text;
}

void WriteCost(JsonWriter& json, const TopoDescription& description) {
  json.StartObject("cost");
  json.Text("prices", description.prices.name);
  json.Text("currency", description.prices.currency);
  json.Real("total", description.cost.cost);
  json.Real("watts", description.cost.watts);
  json.StartArray("parts");
  for (const PartCost& part : description.cost.parts) {
    const PartPrice& price = description.prices.parts[static_cast<size_t>(part.part)];
    json.StartObject();
    json.Text("part", NetworkPartName(part.part));
    json.Number("count", part.count);
    if (part.has_cost) {
      json.Real("cost", part.cost);
      json.Text("cost_source", price.cost_source);
    }
    if (part.has_watts) {
      json.Real("watts", part.watts);
      json.Text("watts_source", price.watts_source);
    }
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void WriteLengths(JsonWriter& json, const FabricMeasures& measures) {
  json.StartArray("cable_lengths");
  for (const LengthCount& length : measures.lengths) {
    json.StartObject();
    json.Number("up_to_m", length.up_to_m);
    json.Number("cables", length.cables);
    json.EndObject();
  }
  json.EndArray();
}

void WriteCircuits(JsonWriter& json, const CircuitSchedule& circuits) {
  json.StartObject("circuits");
  json.Number("configurations", circuits.slots);
  json.Number("cables", circuits.slots_of_cable.size());
  json.Number("slot_ps", static_cast<uint64_t>(circuits.slot_ps));
  json.Number("dark_ps", static_cast<uint64_t>(circuits.dark_ps));
  json.Number("drain_ps", static_cast<uint64_t>(circuits.drain_ps));
  json.EndObject();
}

}  // namespace

TopoDescription DescribeFabric(const FabricGraph& fabric, const Prices& prices) {
  TopoDescription description = {.name = fabric.name,
                                 .routing = fabric.routing,
                                 .deadlock_avoidance = fabric.deadlock_avoidance,
                                 .measures = {},
                                 .preflight = {},
                                 .circuits = fabric.circuits,
                                 .cost = CostOf(fabric, prices),
                                 .prices = prices,
                                 .flow = std::nullopt};
  if (!fabric.circuits) {
    description.measures = Measure(fabric);
    description.preflight = Preflight(fabric, description.measures);
    return description;
  }
  const FabricGraph first = AtSlot(fabric, 0);
  description.measures = Measure(first);
  description.preflight = Preflight(first, description.measures);
  AddPartedSlots(fabric, description.preflight);
  return description;
}

std::string ToText(const TopoDescription& description) {
  const FabricMeasures& m = description.measures;
  std::string text = fmt::format("{}: {} in {}, {} NVSwitch{}, {}, {} switch{}\n", description.name,
                                 Counted(m.gpus, "GPU"), Counted(m.servers, "server"), m.nvswitches,
                                 m.nvswitches == 1 ? "" : "es", Counted(m.nics, "NIC"), m.switches,
                                 m.switches == 1 ? "" : "es");
  for (const TierMeasures& tier : m.tiers) text += TierLine(tier);
  for (const RadixCount& radix : m.radices) {
    text += fmt::format("  {} switch{} with {}\n", radix.switches, radix.switches == 1 ? "" : "es",
                        Counted(radix.ports, "port"));
  }
  for (const Oversubscription& rung : m.oversubscription) {
    text += fmt::format("  {} over {}: at most {:.3g}:1\n", TierName(rung.lower),
                        JoinTiers(rung.uppers, " and "), rung.worst);
  }
  if (!m.lengths.empty()) {
    text += "  cables by length:";
    for (const LengthCount& length : m.lengths) {
      text += fmt::format("{} {} up to {} m", &length == &m.lengths.front() ? "" : ",",
                          length.cables, length.up_to_m);
    }
    text += "\n";
  }
  if (description.circuits) {
    const CircuitSchedule& circuits = *description.circuits;
    text += fmt::format(
        "Optical circuits: {} configurations of {} in turn, dark for {}, drained for {}; below is "
        "the first\n",
        circuits.slots, FormatDuration(circuits.slot_ps), FormatDuration(circuits.dark_ps),
        FormatDuration(circuits.drain_ps));
  }
  text += fmt::format(
      "Bisection (maximum flow, first half of the {} to the other): {}, by {}\n",
      m.servers == 1 ? "GPUs" : "servers", FormatRate(m.bisection_bps),
      m.bisection_classes < m.bisection_nodes
          ? fmt::format("{} classes of {} nodes", m.bisection_classes, m.bisection_nodes)
          : std::string("all nodes"));
  if (description.flow) {
    text += fmt::format("Maximum flow from servers {} to {}: {}\n", description.flow->from,
                        description.flow->to, FormatRate(description.flow->bps));
  }
  text += fmt::format("Diameter: {}, mean {:.3g}, from {}{}\n", Counted(m.diameter_hops, "link"),
                      m.mean_hops, Counted(m.hop_sources, "GPU"),
                      m.hop_sources < m.gpus ? " (sampled)" : "");
  if (m.path_pairs > 0) {
    text += fmt::format("Shortest paths between NICs: {} to {}, median {}, of {} pairs\n",
                        m.paths_min, m.paths_max, m.paths_median, m.path_pairs);
  }
  if (m.connectivity_pairs > 0) {
    text += fmt::format(
        "Fewest cables whose loss parts two GPUs: {}, of {} pairs (same server, same rail, others, "
        "drawn)\n",
        m.edge_connectivity, m.connectivity_pairs);
  }
  text += fmt::format("Routing {}, deadlock avoidance {}\n", RoutingPolicyName(description.routing),
                      DeadlockAvoidanceName(description.deadlock_avoidance));
  text += CostText(description);
  text += description.preflight.empty() ? "Preflight: nothing to report\n" : "Preflight:\n";
  for (const PreflightFinding& finding : description.preflight) {
    text += fmt::format("  {}: {}: {}\n", PreflightSeverityName(finding.severity), finding.code,
                        finding.what);
  }
  return text;
}

std::string ToJson(const TopoDescription& description) {
  const FabricMeasures& m = description.measures;
  JsonWriter json;
  json.StartObject();
  json.Text("name", description.name);
  json.Number("gpus", m.gpus);
  json.Number("servers", m.servers);
  json.Number("nvswitches", m.nvswitches);
  json.Number("nics", m.nics);
  json.Number("switches", m.switches);
  WriteTiers(json, m);
  WriteSwitches(json, m);
  WriteLengths(json, m);
  if (description.circuits) WriteCircuits(json, *description.circuits);
  json.Number("bisection_bytes_per_s", m.bisection_bps / 8);
  json.Text("bisection_method",
            m.bisection_classes < m.bisection_nodes ? "SYMMETRY_CLASSES" : "ALL_NODES");
  json.Number("bisection_nodes", m.bisection_nodes);
  json.Number("bisection_classes", m.bisection_classes);
  if (description.flow) {
    json.StartObject("flow");
    json.Text("from_servers", description.flow->from);
    json.Text("to_servers", description.flow->to);
    json.Number("bytes_per_s", description.flow->bps / 8);
    json.EndObject();
  }
  json.Number("diameter_hops", m.diameter_hops);
  json.Real("mean_hops", m.mean_hops);
  json.Number("hop_sources", m.hop_sources);
  json.Number("shortest_paths_min", m.paths_min);
  json.Number("shortest_paths_median", m.paths_median);
  json.Number("shortest_paths_max", m.paths_max);
  json.Number("shortest_paths_pairs", m.path_pairs);
  json.Number("edge_connectivity", m.edge_connectivity);
  json.Number("edge_connectivity_pairs", m.connectivity_pairs);
  json.Text("routing", RoutingPolicyName(description.routing));
  json.Text("deadlock_avoidance", DeadlockAvoidanceName(description.deadlock_avoidance));
  WriteCost(json, description);
  WritePreflight(json, description.preflight);
  json.EndObject();
  return json.Take();
}

}  // namespace railyard
