// SPDX-License-Identifier: GPL-2.0-only
// Measures a fabric: parts, capacities, distances.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes the cables of one tier.
struct TierMeasures {
  Tier tier = Tier::kNvlink;
  uint64_t count = 0;
  uint64_t lanes = 0;
  uint64_t rate_bps_min = 0;
  uint64_t rate_bps_max = 0;
  uint64_t capacity_bps = 0;  // all cables, one direction
  int64_t delay_ps_min = 0;
  int64_t delay_ps_max = 0;
};

// Describes the oversubscription of switches between two tiers: their rate to the lower tier over
// their rate to the upper one; 1 or less is non-blocking. For switches with NICs and DIRECT, LOCAL
// or GLOBAL cables it is the rate to NICs over the rate of all of these cables, and `upper` is the
// highest of their tiers.
struct Oversubscription {
  Tier lower = Tier::kNicLeaf;
  std::vector<Tier> uppers;  // the tiers by which traffic from `lower` leaves, ascending
  double worst = 0;
  std::string worst_switch;
};

// Counts the switches with equal radix.
struct RadixCount {
  uint32_t ports = 0;
  uint32_t switches = 0;
};

// Counts the cables outside servers of a class of lengths. The length follows from the delay: 5 ns
// per metre, after 120 ns of FEC. The classes are the lengths in which cables are sold; the last
// class also contains all longer cables.
struct LengthCount {
  uint32_t up_to_m = 0;
  uint64_t cables = 0;
};
inline constexpr int64_t kFecDelayPs = 120'000;
inline constexpr int64_t kDelayPsPerMetre = 5'000;

struct FabricMeasures {
  uint32_t gpus = 0;
  uint32_t servers = 0;
  uint32_t nvswitches = 0;
  uint32_t nics = 0;
  uint32_t switches = 0;
  std::vector<TierMeasures> tiers;   // only tiers with cables, in the order of Tier
  std::vector<RadixCount> radices;   // by ports
  std::vector<LengthCount> lengths;  // only classes with cables, by length
  std::vector<Oversubscription> oversubscription;
  uint64_t bisection_bps = 0;  // Bisection
  uint32_t bisection_nodes = 0;
  uint32_t bisection_classes = 0;
  // These are distances from `hop_sources` GPUs to all GPUs over every device that forwards, NVLink
  // relays included.
  uint32_t diameter_hops = 0;
  double mean_hops = 0;
  uint32_t hop_sources = 0;
  // These are numbers of equal-cost shortest paths from NIC to NIC, over `path_pairs` pairs of GPUs
  // of different servers; a pair without a path counts as 0.
  uint64_t paths_min = 0;
  uint64_t paths_median = 0;
  uint64_t paths_max = 0;
  uint32_t path_pairs = 0;
  // The least EdgeConnectivity of `connectivity_pairs` pairs of GPUs: neighbours in a server, GPUs
  // of the first and last server on the same rail and on another rail, and random ones.
  uint32_t edge_connectivity = 0;
  uint32_t connectivity_pairs = 0;
};

FabricMeasures Measure(const FabricGraph& fabric);

}  // namespace railyard
