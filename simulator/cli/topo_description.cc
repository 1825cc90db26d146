// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_description.h"

#include <string_view>

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "simulator/units/units.h"

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
  constexpr int64_t kFecPs = 120 * kPsPerNs;
  constexpr int64_t kPsPerMetre = 5 * kPsPerNs;
  return delay_ps < kFecPs ? ""
                           : fmt::format("{:.3g} m", static_cast<double>(delay_ps - kFecPs) /
                                                         static_cast<double>(kPsPerMetre));
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

}  // namespace

TopoDescription DescribeFabric(const FabricGraph& fabric) {
  TopoDescription description = {.name = fabric.name,
                                 .routing = fabric.routing,
                                 .deadlock_avoidance = fabric.deadlock_avoidance,
                                 .measures = Measure(fabric),
                                 .preflight = {}};
  description.preflight = Preflight(fabric, description.measures);
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
  text += fmt::format("Bisection (first half of the {} to the other): {}\n",
                      m.servers == 1 ? "GPUs" : "servers", FormatRate(m.bisection_bps));
  text += fmt::format("Diameter: {} links, mean {:.3g}, from {} GPUs{}\n", m.diameter_hops,
                      m.mean_hops, m.hop_sources, m.hop_sources < m.gpus ? " (sampled)" : "");
  if (m.path_pairs > 0) {
    text += fmt::format("Shortest paths between NICs: {} to {}, median {}, of {} pairs\n",
                        m.paths_min, m.paths_max, m.paths_median, m.path_pairs);
  }
  if (m.connectivity_pairs > 0) {
    text += fmt::format("Fewest cables that part two GPUs: {}, of {} pairs\n", m.edge_connectivity,
                        m.connectivity_pairs);
  }
  text += fmt::format("Routing {}, deadlock avoidance {}\n", RoutingPolicyName(description.routing),
                      DeadlockAvoidanceName(description.deadlock_avoidance));
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
  Member(json, "bisection_bytes_per_s", m.bisection_bps / 8);
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
  WritePreflight(json, description.preflight);
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace railyard
