// SPDX-License-Identifier: GPL-2.0-only
// Generates top-of-rack switches joined by optical circuit switches that rotate through a
// timetable, so that every pair of racks has a direct circuit in turn. Meanwhile packets take
// several hops over the circuits that are connected (Mellette et al.: "Expanding across time to
// deliver bandwidth efficiency and low latency" (Opera), NSDI 2020; "RotorNet", SIGCOMM 2017).
//
//   NICs ──NIC_LEAF── tor<i> ──DIRECT── tor<j>     in the slots whose matching pairs i and j
//
//   slot:      0         1         2        …      T = racks - 1 matchings, u circuit switches:
//   ocs 0   |matching 0         |matching 2         in slot s are matchings s, s-1, … s-u+1;
//   ocs 1   …      |matching 1          |…          one circuit switch turns at each slot's start
//
// The matchings are the rounds of a round-robin tournament; any two consecutive ones form a ring
// through all racks, so all are joined even while one circuit switch is dark. The assignment of
// circuits to uplinks is not modelled, nor is a controller that follows the traffic. The defaults
// of slot and dark time are of Opera's order of magnitude, 100 us and 10 us; MEMS switches take
// milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct OpticalSpec {
  NetworkSpec network{};
  uint32_t nics_per_switch = 4;
  uint32_t circuit_switches = 4;  // u; also the uplinks of a top-of-rack switch
  LinkSpec circuit{};
  int64_t slot_ps = 100 * kPsPerUs;
  int64_t dark_ps = 10 * kPsPerUs;
  // Time that the queues of two switches on a path need to drain: 1 MB each at 400 Gb/s.
  int64_t drain_ps = 40 * kPsPerUs;
};

std::vector<SpecProblem> CheckOptical(const OpticalSpec& spec);
// Precondition: CheckOptical(spec) is empty.
FabricGraph MakeOptical(const OpticalSpec& spec);

}  // namespace railyard
