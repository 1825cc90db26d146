// SPDX-License-Identifier: GPL-2.0-only
// Generates a torus of one to four dimensions (Dally, Seitz: "The torus routing chip", 1986) whose
// routers are parts of the NICs, as in Fujitsu's Tofu or TPU pods: cables between routers are
// DIRECT.
//
//   router<x>.<y>.<z> ──DIRECT── its two neighbours in each dimension, around the edges as well
//   NICs are attached to the routers in order, nics_per_router to each
//
// A dimension of two has one cable (bundle) between its two routers. Routes go dimension by
// dimension; a second lossless class behind a dateline breaks each ring's cycle. Valiant's routes
// do so twice, with separate classes for each part.
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
  bool valiant = false;  // each flow passes a randomly drawn switch
};

std::vector<SpecProblem> CheckTorus(const TorusSpec& spec);
// Precondition: CheckTorus(spec) is empty.
FabricGraph MakeTorus(const TorusSpec& spec);

}  // namespace railyard
