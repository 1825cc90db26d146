// SPDX-License-Identifier: GPL-2.0-only
// Generates a HyperX (Ahn et al.: "HyperX: topology, routing, and packaging of efficient
// large-scale networks", SC 2009): switches are arranged in a box of one to four dimensions, and
// each is cabled to all others that differ from it in one coordinate. A flattened butterfly is a
// HyperX with equal dimensions; with one dimension it is a full mesh.
//
//   switch<x>.<y> ──LOCAL (first dimension)/GLOBAL (others)── every switch<x'>.<y>, switch<x>.<y'>
//   NICs are attached to the switches in order, nics_per_switch to each
//
// Routes go dimension by dimension, which needs no further lossless class; Valiant's routes do so
// twice and take a second class for the second part.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/server.h"

namespace railyard {

struct HyperXSpec {
  NetworkSpec network{};
  std::vector<uint32_t> dimensions{};  // switches in each
  uint32_t nics_per_switch = 8;
  LinkSpec local{};
  LinkSpec global{};
  bool valiant = false;  // each flow passes a randomly drawn switch
};

std::vector<SpecProblem> CheckHyperX(const HyperXSpec& spec);
// Precondition: CheckHyperX(spec) is empty.
FabricGraph MakeHyperX(const HyperXSpec& spec);

}  // namespace railyard
