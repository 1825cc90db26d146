// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/gpu_placement.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "simulator/units/mix64.h"

namespace railyard {
namespace {

const Device& GpuDevice(const FabricGraph& fabric, uint32_t gpu) {
  return fabric.device(fabric.gpus()[gpu]);
}

// By a key of each, then by their number.
template <typename KeyOf>
void SortBy(KeyOf key_of, std::vector<uint32_t>& gpus) {
  std::stable_sort(gpus.begin(), gpus.end(),
                   [&](uint32_t a, uint32_t b) { return key_of(a) < key_of(b); });
}

// How many free GPUs of its server come before each.
std::vector<uint32_t> PlacesInServers(const FabricGraph& fabric,
                                      const std::vector<uint32_t>& free) {
  std::vector<uint32_t> places(fabric.gpus().size());
  std::map<int32_t, uint32_t> seen;
  for (const uint32_t gpu : free) places[gpu] = seen[GpuDevice(fabric, gpu).server]++;
  return places;
}

}  // namespace

std::optional<std::vector<uint32_t>> PlaceRanks(const FabricGraph& fabric, PlacementPolicy policy,
                                                uint32_t rank_count, uint64_t seed,
                                                const std::vector<bool>& taken) {
  std::vector<uint32_t> free;
  for (uint32_t gpu = 0; gpu < fabric.gpus().size(); ++gpu) {
    if (!taken[gpu]) free.push_back(gpu);
  }
  if (free.size() < rank_count) return std::nullopt;
  const auto server_of = [&](uint32_t gpu) { return GpuDevice(fabric, gpu).server; };
  const auto rail_of = [&](uint32_t gpu) { return GpuDevice(fabric, gpu).local_index; };
  switch (policy) {
    case PlacementPolicy::kPacked:
      SortBy(server_of, free);
      break;
    case PlacementPolicy::kStriped: {
      const std::vector<uint32_t> places = PlacesInServers(fabric, free);
      SortBy([&](uint32_t gpu) { return std::tuple(places[gpu], server_of(gpu)); }, free);
      break;
    }
    case PlacementPolicy::kByRail:
      SortBy([&](uint32_t gpu) { return std::tuple(rail_of(gpu), server_of(gpu)); }, free);
      break;
    case PlacementPolicy::kRandom:
      SortBy([&](uint32_t gpu) { return Mix64(Mix64(seed) ^ gpu); }, free);
      break;
  }
  free.resize(rank_count);
  if (policy == PlacementPolicy::kByRail) std::sort(free.begin(), free.end());
  return free;
}

std::optional<uint32_t> NearestFreeGpu(const FabricGraph& fabric, uint32_t gpu,
                                       const std::vector<bool>& taken) {
  std::optional<uint32_t> nearest;
  const auto distance = [&](uint32_t other) {
    const bool is_elsewhere = GpuDevice(fabric, other).server != GpuDevice(fabric, gpu).server;
    return std::tuple(is_elsewhere, other > gpu ? other - gpu : gpu - other);
  };
  for (uint32_t other = 0; other < fabric.gpus().size(); ++other) {
    if (taken[other]) continue;
    if (!nearest || distance(other) < distance(*nearest)) nearest = other;
  }
  return nearest;
}

}  // namespace railyard
