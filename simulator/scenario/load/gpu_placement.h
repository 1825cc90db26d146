// SPDX-License-Identifier: GPL-2.0-only
// Chooses the GPUs of a fabric for a job.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class PlacementPolicy : uint8_t { kPacked, kStriped, kByRail, kRandom };

// Returns GPUs by rank, among those that are not `taken` (by GPU). PACKED takes server after
// server; STRIPED takes one GPU of every server, then another one of every server, and so on;
// BY_RAIL takes the GPU of the lowest local index of every server, then of the next index, and
// assigns ranks in the order of GPUs; RANDOM draws with `seed` and assigns ranks in the order of
// the draws. Returns nullopt if too few are left.
std::optional<std::vector<GpuIndex>> PlaceRanks(const FabricGraph& fabric, PlacementPolicy policy,
                                                uint32_t rank_count, uint64_t seed,
                                                const std::vector<bool>& taken);

// Returns the closest GPU to `gpu` that is not taken: one of its server if possible, else that of
// the closest number, the lower in a tie. Returns nullopt if there is none.
std::optional<GpuIndex> NearestFreeGpu(const FabricGraph& fabric, GpuIndex gpu,
                                       const std::vector<bool>& taken);

}  // namespace railyard
