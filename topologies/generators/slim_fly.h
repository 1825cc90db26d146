// SPDX-License-Identifier: GPL-2.0-only
// Generates a Slim Fly (Besta, Hoefler: "Slim Fly: a cost effective low-diameter network topology",
// SC 2014): a McKay-Miller-Širáň graph of 2q² routers of degree (3q - δ)/2, with at most two cables
// between any two routers. Here q is an odd prime, q = 4w + δ with δ = 1 or -1; powers of primes
// are left out.
//
//   half0/router<x>.<y> ──LOCAL── half0/router<x>.<y'>  if y - y' is in X
//   half1/router<m>.<c> ──LOCAL── half1/router<m>.<c'>  if c - c' is in X'
//   half0/router<x>.<y> ──GLOBAL── half1/router<m>.<c>  if y = m·x + c
//
// Here numbers are integers modulo q, and X and X' are sets of powers of a primitive root (section
// III.A of the paper, after Hafner 2004).
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct SlimFlySpec {
  NetworkSpec network{};
  uint32_t q = 5;
  uint32_t nics_per_router = 4;
  LinkSpec local{};
  LinkSpec global{};
};

std::vector<SpecProblem> CheckSlimFly(const SlimFlySpec& spec);
// Precondition: CheckSlimFly(spec) is empty.
FabricGraph MakeSlimFly(const SlimFlySpec& spec);

}  // namespace railyard
