// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/gpu_placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/units/mix64.h"

namespace railyard {
namespace {

const Device& GpuDevice(const FabricGraph& fabric, GpuIndex gpu) {
  return fabric.device(fabric.gpus()[gpu]);
}

// By a key of each, then by their number.
template <typename KeyOf>
void SortBy(KeyOf key_of, std::vector<GpuIndex>& gpus) {
  std::stable_sort(gpus.begin(), gpus.end(),
                   [&](GpuIndex a, GpuIndex b) { return key_of(a) < key_of(b); });
}

// Returns for each GPU how many free GPUs of its server come before it.
std::vector<uint32_t> PlacesInServers(const FabricGraph& fabric,
                                      const std::vector<GpuIndex>& free) {
  std::vector<uint32_t> places(fabric.gpus().size());
  std::map<ServerIndex, uint32_t> seen;
  for (const GpuIndex gpu : free) places[gpu] = seen[GpuDevice(fabric, gpu).server]++;
  return places;
}

}  // namespace

std::optional<std::vector<GpuIndex>> PlaceRanks(const FabricGraph& fabric, PlacementPolicy policy,
                                                uint32_t rank_count, uint64_t seed,
                                                const std::vector<bool>& taken) {
  std::vector<GpuIndex> free;
  for (GpuIndex gpu{0}; gpu < fabric.gpus().size(); ++gpu) {
    if (!taken[gpu]) free.push_back(gpu);
  }
  if (free.size() < rank_count) return std::nullopt;
  const auto server_of = [&](GpuIndex gpu) { return GpuDevice(fabric, gpu).server; };
  const auto rail_of = [&](GpuIndex gpu) { return GpuDevice(fabric, gpu).local_index; };
  switch (policy) {
    case PlacementPolicy::kPacked:
      SortBy(server_of, free);
      break;
    case PlacementPolicy::kStriped: {
      const std::vector<uint32_t> places = PlacesInServers(fabric, free);
      SortBy([&](GpuIndex gpu) { return std::tuple(places[gpu], server_of(gpu)); }, free);
      break;
    }
    case PlacementPolicy::kByRail:
      SortBy([&](GpuIndex gpu) { return std::tuple(rail_of(gpu), server_of(gpu)); }, free);
      break;
    case PlacementPolicy::kRandom:
      SortBy([&](GpuIndex gpu) { return Mix64(Mix64(seed) ^ gpu); }, free);
      break;
  }
  free.resize(rank_count);
  if (policy == PlacementPolicy::kByRail) std::sort(free.begin(), free.end());
  return free;
}

std::optional<GpuIndex> NearestFreeGpu(const FabricGraph& fabric, GpuIndex gpu,
                                       const std::vector<bool>& taken) {
  std::optional<GpuIndex> nearest;
  const auto distance = [&](GpuIndex other) {
    const bool is_elsewhere = GpuDevice(fabric, other).server != GpuDevice(fabric, gpu).server;
    return std::tuple(is_elsewhere, other > gpu ? other - gpu : gpu - other);
  };
  for (GpuIndex other{0}; other < fabric.gpus().size(); ++other) {
    if (taken[other]) continue;
    if (!nearest || distance(other) < distance(*nearest)) nearest = other;
  }
  return nearest;
}

}  // namespace railyard
