// SPDX-License-Identifier: GPL-2.0-only
// HyperX (Ahn et al.: "HyperX: topology, routing, and packaging of efficient large-scale networks",
// SC 2009): switches in a box of one to four dimensions, each cabled to all others that differ in
// one coordinate. A flattened butterfly is one with equal dimensions; one dimension is a full mesh.
//
//   switch<x>.<y> ──LOCAL (first dimension)/GLOBAL (others)── every switch<x'>.<y>, switch<x>.<y'>
//   NICs hang on the switches in order, nics_per_switch on each
//
// Routed dimension by dimension, which needs no further class; Valiant's routes do so twice and
// take a second class for the second part.
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
  bool valiant = false;  // each flow over a switch that it draws
};

std::vector<SpecProblem> CheckHyperX(const HyperXSpec& spec);
// Precondition: CheckHyperX(spec) is empty.
FabricGraph MakeHyperX(const HyperXSpec& spec);

}  // namespace railyard
