// SPDX-License-Identifier: GPL-2.0-only
// Generates a Jellyfish (Singla, Hong, Popa, Godfrey: "Jellyfish: networking data centers
// randomly", NSDI 2012): a random regular graph of switches, with high probability an expander. It
// depends on the seed alone, so it is the same in every run; it is redrawn until it is connected.
//
//   switch<i> ──GLOBAL── `degree` different others; nics_per_switch NICs in order
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct JellyfishSpec {
  NetworkSpec network{};
  uint32_t switches = 16;
  uint32_t degree = 4;
  uint32_t nics_per_switch = 4;
  uint64_t seed = 1;
  LinkSpec global{};
};

std::vector<SpecProblem> CheckJellyfish(const JellyfishSpec& spec);
// Precondition: CheckJellyfish(spec) is empty.
FabricGraph MakeJellyfish(const JellyfishSpec& spec);

}  // namespace railyard
