// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/direct_connect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "topologies/generators/weighted_matching.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {
namespace {

constexpr uint32_t kMostServers = 512;  // a matching of all pairs takes a tenth of a second
constexpr uint64_t kMostDemandBytes = uint64_t{1} << 60;

using Pair = std::pair<uint32_t, uint32_t>;  // the smaller first

// Returns strides that visit all servers, of which no two are each other's reverse: 1, and the
// nearest to each power of N^(1/rings), so that any server is few steps from any other (TopoOpt's
// SelectPermutations).
std::vector<uint32_t> RingStrides(uint32_t servers, uint32_t rings) {
  std::vector<uint32_t> all;
  for (uint32_t stride = 1; stride <= servers / 2; ++stride) {
    if (std::gcd(stride, servers) == 1 && (2 * stride != servers || servers == 2)) {
      all.push_back(stride);
    }
  }
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < rings && !all.empty(); ++i) {
    const double wanted = std::pow(servers, static_cast<double>(i) / rings);
    const auto nearest = std::min_element(all.begin(), all.end(), [&](uint32_t a, uint32_t b) {
      return std::abs(a - wanted) < std::abs(b - wanted);
    });
    chosen.push_back(*nearest);
    all.erase(nearest);
  }
  return chosen;
}

// The pairs between which the most traffic flows together, each server in one at most.
std::vector<Pair> BusiestPairs(uint32_t servers, const std::map<Pair, int64_t>& traffic) {
  std::vector<WeightedEdge> edges;
  for (const auto& [pair, bytes] : traffic) {
    if (bytes > 0) edges.push_back({.from = pair.first, .to = pair.second, .weight = bytes});
  }
  return HeaviestMatching(servers, edges);
}

}  // namespace

std::vector<SpecProblem> CheckDirectConnect(const DirectConnectSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("degree", spec.degree, 2, 64);
  check.Count("rings", spec.rings, 1, 32);
  check.Links("direct", spec.direct);
  if (!check.Clean()) return check.Take();
  const uint64_t servers = spec.network.server_count();
  if (servers < 3 || servers > kMostServers) {
    check.Add("servers", fmt::format("there are {} (expected 3 to {})", servers, kMostServers));
    return check.Take();
  }
  if (spec.degree < 2 * spec.rings) {
    check.Add("degree", fmt::format("{} is not enough for {} rings (expected at least {})",
                                    spec.degree, spec.rings, 2 * spec.rings));
  }
  const size_t rings = RingStrides(static_cast<uint32_t>(servers), spec.rings).size();
  if (rings < spec.rings) {
    check.Add("rings", fmt::format("{} servers have only {} different rings (expected at most {})",
                                   servers, rings, rings));
  }
  uint64_t total = 0;
  for (size_t i = 0; i < spec.demands.size(); ++i) {
    const ServerDemand& demand = spec.demands[i];
    const auto field = [i](const char* name) { return fmt::format("demands[{}].{}", i, name); };
    check.Count(field("from"), demand.from, 0, servers - 1);
    check.Count(field("to"), demand.to, 0, servers - 1);
    if (demand.from == demand.to) {
      check.Add(field("to"), fmt::format("server {} needs no cable to itself", demand.to));
    }
    check.Count(field("bytes"), demand.bytes, 1, kMostDemandBytes);
    total += std::min(demand.bytes, kMostDemandBytes + 1);
    if (total > kMostDemandBytes) {
      check.Add(field("bytes"),
                fmt::format("all demands together are more than {} bytes", kMostDemandBytes));
      break;
    }
  }
  return check.Take();
}

FabricGraph MakeDirectConnect(const DirectConnectSpec& spec) {
  SIM_CHECK(CheckDirectConnect(spec).empty(), "a direct-connect fabric that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  const auto servers = static_cast<uint32_t>(spec.network.server_count());
  std::vector<DeviceId> routers(servers);
  for (uint32_t i = 0; i < servers; ++i) {
    routers[i] = builder.AddSwitch(fmt::format("router{}", i));
  }
  for (const BuiltNic& nic : nics) builder.Attach(nic, routers[nic.server]);

  for (const uint32_t stride : RingStrides(servers, spec.rings)) {
    for (uint32_t i = 0; i < servers; ++i) {
      builder.Join(routers[i], routers[(i + stride) % servers], Tier::kDirect, spec.direct);
    }
  }
  std::map<Pair, int64_t> traffic;
  for (const ServerDemand& demand : spec.demands) {
    traffic[std::minmax(demand.from, demand.to)] += static_cast<int64_t>(demand.bytes);
  }
  for (uint32_t round = 2 * spec.rings; round < spec.degree; ++round) {
    for (const Pair& pair : BusiestPairs(servers, traffic)) {
      builder.Join(routers[pair.first], routers[pair.second], Tier::kDirect, spec.direct);
      traffic[pair] /= 2;
    }
  }
  builder.fabric().deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  return std::move(builder).Take();
}

}  // namespace railyard
