// SPDX-License-Identifier: GPL-2.0-only
// Torus of one to four dimensions (Dally, Seitz: "The torus routing chip", 1986) whose routers are
// parts of the NICs, as in Fujitsu's Tofu or TPU pods: cables between routers are DIRECT.
//
//   router<x>.<y>.<z> ──DIRECT── its two neighbours in each dimension, around the edges as well
//   NICs hang on the routers in order, nics_per_router on each
//
// A dimension of two has one cable (bundle) between its two routers. Routed dimension by dimension;
// the second lossless class behind a dateline breaks each ring's circle. Valiant's routes do so
// twice, with classes of their own for either part.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct TorusSpec {
  NetworkSpec network{};
  std::vector<uint32_t> dimensions{};  // routers in each
  uint32_t nics_per_router = 1;
  LinkSpec direct{};
  bool valiant = false;  // each flow over a switch that it draws
};

std::vector<SpecProblem> CheckTorus(const TorusSpec& spec);
// Precondition: CheckTorus(spec) is empty.
FabricGraph MakeTorus(const TorusSpec& spec);

}  // namespace railyard
