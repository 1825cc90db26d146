// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_description.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "simulator/units/units.h"
#include "topologies/circuit_schedule.h"
#include "topologies/hop_counts.h"

namespace railyard {
namespace {

using Writer = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

void Member(Writer& json, const char* key, std::string_view value) {
  json.Key(key);
  json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void Member(Writer& json, const char* key, uint64_t value) {
  json.Key(key);
  json.Uint64(value);
}

void Member(Writer& json, const char* key, double value) {
  json.Key(key);
  json.Double(value);
}

void WriteTiers(Writer& json, const FabricMeasures& measures) {
  json.Key("links");
  json.StartArray();
  for (const TierMeasures& tier : measures.tiers) {
    json.StartObject();
    Member(json, "tier", TierName(tier.tier));
    Member(json, "count", tier.count);
    Member(json, "lanes", tier.lanes);
    Member(json, "rate_bps_min", tier.rate_bps_min);
    Member(json, "rate_bps_max", tier.rate_bps_max);
    Member(json, "capacity_bytes_per_s", tier.capacity_bps / 8);
    Member(json, "delay_ps_min", static_cast<uint64_t>(tier.delay_ps_min));
    Member(json, "delay_ps_max", static_cast<uint64_t>(tier.delay_ps_max));
    json.EndObject();
  }
  json.EndArray();
}

void WriteSwitches(Writer& json, const FabricMeasures& measures) {
  json.Key("radix");
  json.StartArray();
  for (const RadixCount& radix : measures.radices) {
    json.StartObject();
    Member(json, "ports", uint64_t{radix.ports});
    Member(json, "switches", uint64_t{radix.switches});
    json.EndObject();
  }
  json.EndArray();
  json.Key("oversubscription");
  json.StartArray();
  for (const Oversubscription& rung : measures.oversubscription) {
    json.StartObject();
    Member(json, "lower", TierName(rung.lower));
    Member(json, "upper", TierName(rung.upper));
    Member(json, "worst", rung.worst);
    Member(json, "switch", rung.worst_switch);
    json.EndObject();
  }
  json.EndArray();
}

void WritePreflight(Writer& json, const std::vector<PreflightFinding>& findings) {
  json.Key("preflight");
  json.StartArray();
  for (const PreflightFinding& finding : findings) {
    json.StartObject();
    Member(json, "severity", PreflightSeverityName(finding.severity));
    Member(json, "code", finding.code);
    Member(json, "what", finding.what);
    json.EndObject();
  }
  json.EndArray();
}

// "5 m" as far as a delay tells: what is over an FEC's 120 ns, at 5 ns a metre.
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

// Configurations of circuits that leave GPUs without a way to each other.
void AddPartedSlots(const FabricGraph& fabric, std::vector<PreflightFinding>& findings) {
  constexpr uint32_t kMostSlots = 64;
  const uint32_t slots = fabric.circuits->slots;
  const uint32_t looked_at = std::min(slots, kMostSlots);
  for (uint32_t i = 1; i < looked_at; ++i) {
    const auto slot = static_cast<uint32_t>(uint64_t{i} * slots / looked_at);
    const FabricGraph at = AtSlot(fabric, slot);
    const HopCounts hops = CountHops(at, {at.gpus().front()});
    if (hops.unreached_pairs == 0) continue;
    findings.insert(findings.begin(), {PreflightSeverity::kError, "UNREACHABLE",
                                       fmt::format("in configuration {} of {} {} does not reach {}",
                                                   slot, slots, at.device(hops.unreached_from).name,
                                                   at.device(hops.unreached_to).name)});
    return;
  }
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

void WriteCost(Writer& json, const TopoDescription& description) {
  json.Key("cost");
  json.StartObject();
  Member(json, "prices", description.prices.name);
  Member(json, "currency", description.prices.currency);
  Member(json, "total", description.cost.cost);
  Member(json, "watts", description.cost.watts);
  json.Key("parts");
  json.StartArray();
  for (const PartCost& part : description.cost.parts) {
    const PartPrice& price = description.prices.parts[static_cast<size_t>(part.part)];
    json.StartObject();
    Member(json, "part", NetworkPartName(part.part));
    Member(json, "count", part.count);
    if (part.has_cost) {
      Member(json, "cost", part.cost);
      Member(json, "cost_source", price.cost_source);
    }
    if (part.has_watts) {
      Member(json, "watts", part.watts);
      Member(json, "watts_source", price.watts_source);
    }
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void WriteLengths(Writer& json, const FabricMeasures& measures) {
  json.Key("cable_lengths");
  json.StartArray();
  for (const LengthCount& length : measures.lengths) {
    json.StartObject();
    Member(json, "up_to_m", uint64_t{length.up_to_m});
    Member(json, "cables", length.cables);
    json.EndObject();
  }
  json.EndArray();
}

void WriteCircuits(Writer& json, const CircuitSchedule& circuits) {
  json.Key("circuits");
  json.StartObject();
  Member(json, "configurations", uint64_t{circuits.slots});
  Member(json, "cables", uint64_t{circuits.slots_of_cable.size()});
  Member(json, "slot_ps", static_cast<uint64_t>(circuits.slot_ps));
  Member(json, "dark_ps", static_cast<uint64_t>(circuits.dark_ps));
  Member(json, "drain_ps", static_cast<uint64_t>(circuits.drain_ps));
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
  std::string text =
      fmt::format("{}: {} GPUs in {} servers, {} NVSwitches, {} NICs, {} switches\n",
                  description.name, m.gpus, m.servers, m.nvswitches, m.nics, m.switches);
  for (const TierMeasures& tier : m.tiers) text += TierLine(tier);
  for (const RadixCount& radix : m.radices) {
    text += fmt::format("  {} switches with {} ports\n", radix.switches, radix.ports);
  }
  for (const Oversubscription& rung : m.oversubscription) {
    text += fmt::format("  {} over {}: at most {:.3g}:1\n", TierName(rung.lower),
                        TierName(rung.upper), rung.worst);
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
  text += fmt::format("Diameter: {} links, mean {:.3g}, from {} GPUs{}\n", m.diameter_hops,
                      m.mean_hops, m.hop_sources, m.hop_sources < m.gpus ? " (sampled)" : "");
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
  rapidjson::StringBuffer buffer;
  Writer json(buffer);
  json.SetIndent(' ', 2);
  json.StartObject();
  Member(json, "name", description.name);
  Member(json, "gpus", uint64_t{m.gpus});
  Member(json, "servers", uint64_t{m.servers});
  Member(json, "nvswitches", uint64_t{m.nvswitches});
  Member(json, "nics", uint64_t{m.nics});
  Member(json, "switches", uint64_t{m.switches});
  WriteTiers(json, m);
  WriteSwitches(json, m);
  WriteLengths(json, m);
  if (description.circuits) WriteCircuits(json, *description.circuits);
  Member(json, "bisection_bytes_per_s", m.bisection_bps / 8);
  Member(json, "bisection_method",
         m.bisection_classes < m.bisection_nodes ? "SYMMETRY_CLASSES" : "ALL_NODES");
  Member(json, "bisection_nodes", uint64_t{m.bisection_nodes});
  Member(json, "bisection_classes", uint64_t{m.bisection_classes});
  if (description.flow) {
    json.Key("flow");
    json.StartObject();
    Member(json, "from_servers", description.flow->from);
    Member(json, "to_servers", description.flow->to);
    Member(json, "bytes_per_s", description.flow->bps / 8);
    json.EndObject();
  }
  Member(json, "diameter_hops", uint64_t{m.diameter_hops});
  Member(json, "mean_hops", m.mean_hops);
  Member(json, "hop_sources", uint64_t{m.hop_sources});
  Member(json, "shortest_paths_min", m.paths_min);
  Member(json, "shortest_paths_median", m.paths_median);
  Member(json, "shortest_paths_max", m.paths_max);
  Member(json, "shortest_paths_pairs", uint64_t{m.path_pairs});
  Member(json, "edge_connectivity", uint64_t{m.edge_connectivity});
  Member(json, "edge_connectivity_pairs", uint64_t{m.connectivity_pairs});
  Member(json, "routing", RoutingPolicyName(description.routing));
  Member(json, "deadlock_avoidance", DeadlockAvoidanceName(description.deadlock_avoidance));
  WriteCost(json, description);
  WritePreflight(json, description.preflight);
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace railyard
