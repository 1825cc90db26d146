// SPDX-License-Identifier: GPL-2.0-only
// Generates Alibaba HPN's network (Qian et al., SIGCOMM 2024): every NIC has two ports, cabled to
// two top-of-rack switches, and a segment has a pair of these switches for each rail.
//
//   nic<r> ──NIC_LEAF── segment<s>/rail<r>/tor0 and .../tor1
//   planes 1 (dual-ToR): every ToR ──LEAF_SPINE── every pod<p>/agg<a> of its pod
//   planes 2 (dual-plane): tor<t> only ── pod<p>/plane<t>/agg<a>
//   planes 2·rails (rail-only tier 2): tor<t> of rail r only ── pod<p>/plane<2r+t>/agg<a>
//   every agg of a plane ──SPINE_CORE── every core<c> of its plane
//
// The backup hosts of a segment and the front-end network are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

// Describes the network. The defaults are the paper's: segments of 1,024 GPUs, 15 segments in a
// pod, ToRs of 51.2 Tb/s with 60 uplinks of 400 Gb/s.
struct DualTorSpec {
  NetworkSpec network{};  // nic_rate is of each port
  uint32_t planes = 2;
  uint32_t servers_per_segment = 128;
  uint32_t segments_per_pod = 15;
  uint32_t aggs_per_plane = 60;  // of a pod
  uint32_t cores_per_plane = 0;  // 0: pods are not joined, and there is only one
  LinkSpec leaf_spine{};
  LinkSpec spine_core{};
};

std::vector<SpecProblem> CheckDualTor(const DualTorSpec& spec);
// Precondition: CheckDualTor(spec) is empty.
FabricGraph MakeDualTor(const DualTorSpec& spec);

}  // namespace railyard
