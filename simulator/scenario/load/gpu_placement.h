// SPDX-License-Identifier: GPL-2.0-only
// Chooses the GPUs of a fabric that a job gets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class PlacementPolicy : uint8_t { kPacked, kStriped, kByRail, kRandom };

// Returns GPUs by rank, among those that are not `taken` (by GPU). PACKED: server after server;
// STRIPED: one of every server, then again; BY_RAIL: of every server the GPU of the lowest local
// index, then of the next, ranks in the order of GPUs; RANDOM: drawn with `seed`, ranks in the
// order drawn. nullopt if too few are left.
std::optional<std::vector<GpuIndex>> PlaceRanks(const FabricGraph& fabric, PlacementPolicy policy,
                                                uint32_t rank_count, uint64_t seed,
                                                const std::vector<bool>& taken);

// Returns the GPU closest to `gpu` that is not taken: of its server if there is one, else the one
// of the closest number, the lower of two. nullopt if there is none.
std::optional<GpuIndex> NearestFreeGpu(const FabricGraph& fabric, GpuIndex gpu,
                                       const std::vector<bool>& taken);

}  // namespace railyard
