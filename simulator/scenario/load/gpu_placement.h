// SPDX-License-Identifier: GPL-2.0-only
// Which GPUs of a fabric a job gets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class PlacementPolicy : uint8_t { kPacked, kStriped, kByRail, kRandom };

// GPUs, by rank, of those that are not `taken` (by GPU): packed, server after server; striped, of
// every server one, then again; by rail, of every server that of the lowest local index, then of
// the next, ranks in the order of GPUs; random, drawn with `seed`, ranks in the order drawn.
// nullopt: too few are left.
std::optional<std::vector<uint32_t>> PlaceRanks(const FabricGraph& fabric, PlacementPolicy policy,
                                                uint32_t rank_count, uint64_t seed,
                                                const std::vector<bool>& taken);

// The GPU closest to `gpu` that is not taken: of its server if there is one, else the one of the
// closest number; the lower of two. nullopt: there is none.
std::optional<uint32_t> NearestFreeGpu(const FabricGraph& fabric, uint32_t gpu,
                                       const std::vector<bool>& taken);

}  // namespace railyard
