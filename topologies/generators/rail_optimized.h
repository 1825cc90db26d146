// SPDX-License-Identifier: GPL-2.0-only
// Generates a rail-optimized fabric: NIC r of every server is cabled to leaf r of its group, so
// that one switch joins GPUs of equal local index and others meet at a spine (NVIDIA DGX SuperPOD
// reference architecture).
//
//   gpu<r> ──HOST── nic<r> ──NIC_LEAF── leaf<r> (one group) or group<g>/leaf<r>
//   every leaf ──LEAF_SPINE (× links_per_leaf_and_spine)── every spine<s>
//
// With cores there is a third tier: groups form pods, each with separate spines,
//
//   every leaf of a pod ── every pod<p>/spine<s> ──SPINE_CORE── every core<c> of plane s mod planes
//
// With 0 spines it is rail-only (Wang et al.: "Rail-only", arXiv 2307.12169): the network does not
// connect the rails, and traffic between them goes over NVLink inside a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"
#include "topologies/graph/spec_check.h"

namespace railyard {

// Describes the fabric. The defaults are those of a DGX H100, see ServerSpec and NetworkSpec.
struct RailOptimizedSpec {
  std::string name = "rail-optimized";
  uint32_t servers = 1;
  uint32_t gpus_per_server = 8;                // and as many NICs
  std::optional<uint32_t> servers_per_leaf{};  // in a group of leaves; if absent, all
  std::optional<uint32_t> spines{};            // of a pod; if absent, NonBlockingSpines()
  uint32_t links_per_leaf_and_spine = 1;       // parallel cables

  uint64_t host_rate_bps = ServerSpec{}.host_rate_bps;
  uint64_t nic_rate_bps = ServerSpec{}.nic_rate_bps;
  int64_t nic_leaf_delay_ps = NetworkSpec{}.nic_delay_ps;
  uint64_t leaf_spine_rate_bps = LinkSpec{}.rate_bps;
  int64_t leaf_spine_delay_ps = LinkSpec{}.delay_ps;
  int64_t switch_latency_ps = NetworkSpec{}.switch_latency_ps;
  int64_t delay_spread_ps = 0;  // as in NetworkSpec

  // The servers, if they are of several kinds or of a platform other than the DGX H100. If this is
  // not empty, `servers`, `gpus_per_server`, `host_rate_bps` and `nic_rate_bps` are ignored.
  std::vector<ServerSpec> mixed_servers{};

  uint32_t cores = 0;
  uint32_t groups_per_pod = 1;  // has no effect without cores, like core_planes
  uint32_t core_planes = 1;
  LinkSpec spine_core{};
};

// Returns every reason why MakeRailOptimized would refuse the spec; empty if there is none.
std::vector<SpecProblem> CheckRailOptimized(const RailOptimizedSpec& spec);

// Returns the number of spines that is used if the spec gives none: enough for a leaf's uplinks to
// carry all that its NICs can send.
uint64_t NonBlockingSpines(const RailOptimizedSpec& spec);

// Precondition: CheckRailOptimized(spec) is empty.
FabricGraph MakeRailOptimized(const RailOptimizedSpec& spec);

}  // namespace railyard
