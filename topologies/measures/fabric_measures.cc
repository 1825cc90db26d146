// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/fabric_measures.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "simulator/units/mix64.h"
#include "topologies/measures/network_flow.h"
#include "topologies/routing/hop_counts.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

constexpr size_t kMostHopSources = 1'024;
constexpr uint32_t kPathPairs = 256;
// A flow over a large fabric takes its time.
constexpr uint32_t kConnectivityPairs = 16;
constexpr uint32_t kConnectivityPairsOfLarge = 2;
constexpr uint32_t kLargeLinkCount = 100'000;

std::vector<TierMeasures> MeasureTiers(const FabricGraph& fabric) {
  std::array<TierMeasures, kTierCount> all = {};
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    TierMeasures& tier = all[static_cast<size_t>(link.tier)];
    const bool is_first = tier.count++ == 0;
    tier.lanes += link.lanes;
    tier.capacity_bps += link.rate_bps;
    tier.rate_bps_min = is_first ? link.rate_bps : std::min(tier.rate_bps_min, link.rate_bps);
    tier.rate_bps_max = std::max(tier.rate_bps_max, link.rate_bps);
    tier.delay_ps_min =
        is_first ? link.propagation_ps : std::min(tier.delay_ps_min, link.propagation_ps);
    tier.delay_ps_max = std::max(tier.delay_ps_max, link.propagation_ps);
  }
  std::vector<TierMeasures> tiers;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].tier = static_cast<Tier>(i);
    if (all[i].count > 0) tiers.push_back(all[i]);
  }
  return tiers;
}

std::vector<LengthCount> MeasureLengths(const FabricGraph& fabric) {
  constexpr std::array<uint32_t, 13> kLengthsM = {1,  2,   3,   5,   10,    20,    30,
                                                  50, 100, 200, 500, 2'000, 10'000};
  std::array<uint64_t, kLengthsM.size()> cables = {};
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    if (link.tier == Tier::kNvlink || link.tier == Tier::kHost) continue;
    const int64_t cable_ps = std::max<int64_t>(0, link.propagation_ps - kFecDelayPs);
    size_t i = 0;
    while (i + 1 < kLengthsM.size() && cable_ps > kLengthsM[i] * kDelayPsPerMetre) ++i;
    ++cables[i];
  }
  std::vector<LengthCount> lengths;
  for (size_t i = 0; i < cables.size(); ++i) {
    if (cables[i] > 0) lengths.push_back({.up_to_m = kLengthsM[i], .cables = cables[i]});
  }
  return lengths;
}

struct Rung {
  Tier lower;
  std::vector<Tier> uppers;
  double ratio;
};

// Returns the rungs of one switch with these rates per tier. Where the switches that have NICs are
// cabled to each other, as in a dragonfly, all their cables carry what the NICs send.
std::vector<Rung> RungsOf(const std::map<Tier, uint64_t>& rate_bps) {
  std::vector<Rung> rungs;
  const auto ratio = [](uint64_t lower_bps, uint64_t upper_bps) {
    return static_cast<double>(lower_bps) / static_cast<double>(upper_bps);
  };
  if (rate_bps.size() < 2) return rungs;
  const Tier highest = rate_bps.rbegin()->first;
  if (rate_bps.begin()->first == Tier::kNicLeaf && highest >= Tier::kDirect) {
    uint64_t network_bps = 0;
    std::vector<Tier> uppers;
    for (auto upper = std::next(rate_bps.begin()); upper != rate_bps.end(); ++upper) {
      network_bps += upper->second;
      uppers.push_back(upper->first);
    }
    rungs.push_back({Tier::kNicLeaf, uppers, ratio(rate_bps.at(Tier::kNicLeaf), network_bps)});
    return rungs;
  }
  for (auto upper = std::next(rate_bps.begin()); upper != rate_bps.end(); ++upper) {
    const auto lower = std::prev(upper);
    rungs.push_back({lower->first, {upper->first}, ratio(lower->second, upper->second)});
  }
  return rungs;
}

void MeasureSwitches(const FabricGraph& fabric, FabricMeasures& measures) {
  std::map<uint32_t, uint32_t> switches_by_ports;
  std::map<std::pair<Tier, std::vector<Tier>>, Oversubscription> ladder;
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind != DeviceKind::kSwitch) continue;
    ++switches_by_ports[static_cast<uint32_t>(boost::out_degree(id, fabric.graph()))];
    std::map<Tier, uint64_t> rate_bps;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(id, fabric.graph()))) {
      rate_bps[fabric.graph()[edge].tier] += fabric.graph()[edge].rate_bps;
    }
    for (const auto& [lower, uppers, ratio] : RungsOf(rate_bps)) {
      Oversubscription& rung = ladder[{lower, uppers}];
      if (ratio <= rung.worst) continue;
      rung = {
          .lower = lower, .uppers = uppers, .worst = ratio, .worst_switch = fabric.device(id).name};
    }
  }
  for (const auto& [ports, switches] : switches_by_ports) {
    measures.radices.push_back({.ports = ports, .switches = switches});
  }
  for (const auto& [tiers, rung] : ladder) measures.oversubscription.push_back(rung);
}

void MeasureHops(const FabricGraph& fabric, FabricMeasures& measures) {
  const std::vector<DeviceId> sources = SampleGpus(fabric, kMostHopSources);
  const HopCounts hops = CountHops(fabric, sources);
  measures.diameter_hops = hops.diameter;
  measures.hop_sources = static_cast<uint32_t>(sources.size());
  if (hops.reached_pairs > 0) {
    measures.mean_hops =
        static_cast<double>(hops.hops_sum) / static_cast<double>(hops.reached_pairs);
  }
}

// The n-th of a fixed series of pairs of GPUs.
std::pair<DeviceId, DeviceId> DrawnPair(const FabricGraph& fabric, uint64_t n) {
  const std::vector<DeviceId>& gpus = fabric.gpus();
  return {gpus[ScaleTo(Mix64(2 * n), gpus.size())], gpus[ScaleTo(Mix64(2 * n + 1), gpus.size())]};
}

void MeasurePaths(const FabricGraph& fabric, FabricMeasures& measures) {
  if (fabric.server_count() < 2) return;
  const EcmpRouting routing(fabric, 0);
  std::vector<uint64_t> counts;
  for (uint64_t n = 0; n < uint64_t{4} * kPathPairs && counts.size() < kPathPairs; ++n) {
    const auto [a, b] = DrawnPair(fabric, n);
    if (fabric.device(a).server == fabric.device(b).server) continue;
    counts.push_back(routing.CountShortestPaths(a, b));
  }
  if (counts.empty()) return;
  std::sort(counts.begin(), counts.end());
  measures.path_pairs = static_cast<uint32_t>(counts.size());
  measures.paths_min = counts.front();
  measures.paths_median = counts[counts.size() / 2];
  measures.paths_max = counts.back();
}

// Returns pairs that represent the classes of a fabric with equal servers, then random pairs.
std::vector<std::pair<DeviceId, DeviceId>> ConnectivityPairs(const FabricGraph& fabric) {
  const std::vector<DeviceId>& gpus = fabric.gpus();
  std::vector<std::pair<DeviceId, DeviceId>> pairs = {{gpus.front(), gpus[(gpus.size() - 1) / 2]},
                                                      {gpus.front(), gpus.back()}};
  const size_t most =
      fabric.link_count() > kLargeLinkCount ? kConnectivityPairsOfLarge : kConnectivityPairs;
  if (most > pairs.size()) {
    pairs.emplace_back(gpus.front(), gpus[std::min<size_t>(1, gpus.size() - 1)]);
    const auto rail_mate = std::find_if(gpus.rbegin(), gpus.rend(), [&](DeviceId gpu) {
      return fabric.device(gpu).local_index == fabric.device(gpus.front()).local_index;
    });
    pairs.emplace_back(gpus.front(), *rail_mate);
  }
  for (uint64_t n = 0; pairs.size() < most; ++n) pairs.push_back(DrawnPair(fabric, n));
  return pairs;
}

void MeasureConnectivity(const FabricGraph& fabric, FabricMeasures& measures) {
  for (const auto& [a, b] : ConnectivityPairs(fabric)) {
    if (a == b) continue;
    const uint32_t cables = EdgeConnectivity(fabric, a, b);
    measures.edge_connectivity =
        measures.connectivity_pairs++ == 0 ? cables : std::min(measures.edge_connectivity, cables);
  }
}

}  // namespace

FabricMeasures Measure(const FabricGraph& fabric) {
  FabricMeasures measures;
  measures.gpus = static_cast<uint32_t>(fabric.gpus().size());
  measures.servers = fabric.server_count();
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    const DeviceKind kind = fabric.device(id).kind;
    if (kind == DeviceKind::kNvSwitch) ++measures.nvswitches;
    if (kind == DeviceKind::kNic) ++measures.nics;
    if (kind == DeviceKind::kSwitch) ++measures.switches;
  }
  measures.tiers = MeasureTiers(fabric);
  measures.lengths = MeasureLengths(fabric);
  MeasureSwitches(fabric, measures);
  const MaxFlow bisection = Bisection(fabric);
  measures.bisection_bps = bisection.bps;
  measures.bisection_nodes = bisection.nodes;
  measures.bisection_classes = bisection.classes;
  MeasureHops(fabric, measures);
  MeasurePaths(fabric, measures);
  MeasureConnectivity(fabric, measures);
  return measures;
}

}  // namespace railyard
