// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/hop_counts.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace railyard {
namespace {

// Adjacency lists of all devices in one array.
class Neighbours {
 public:
  explicit Neighbours(const FabricGraph& fabric) : first_(fabric.device_count() + 1) {
    for (LinkId link{0}; link < fabric.link_count(); ++link) ++first_[fabric.link_source(link) + 1];
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    all_.resize(fabric.link_count());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (LinkId link{0}; link < fabric.link_count(); ++link) {
      all_[next[fabric.link_source(link)]++] = fabric.link_target(link);
    }
  }
  std::span<const DeviceId> Of(DeviceId device) const {
    return {all_.data() + first_[device], all_.data() + first_[device + 1]};
  }

 private:
  std::vector<uint32_t> first_;
  std::vector<DeviceId> all_;
};

// Searches breadth first from up to 64 sources at once. A step takes time for the devices that it
// leaves and reaches, not for all: a chain has as many steps as devices.
class Batch {
 public:
  Batch(const FabricGraph& fabric, const Neighbours& neighbours)
      : fabric_(fabric),
        neighbours_(neighbours),
        seen_(fabric.device_count()),
        frontier_(fabric.device_count()),
        next_(fabric.device_count()),
        is_gpu_(fabric.device_count()) {
    for (const DeviceId gpu : fabric.gpus()) is_gpu_[gpu] = true;
  }

  void Run(std::span<const DeviceId> sources, HopCounts& counts) {
    std::fill(seen_.begin(), seen_.end(), 0);
    for (size_t i = 0; i < sources.size(); ++i) {
      seen_[sources[i]] |= uint64_t{1} << i;
      if (frontier_[sources[i]] == 0) active_.push_back(sources[i]);
      frontier_[sources[i]] |= uint64_t{1} << i;
    }
    for (uint32_t hops = 1; !active_.empty(); ++hops) {
      Step();
      for (const DeviceId device : active_) {
        if (!is_gpu_[device]) continue;
        const auto reached = static_cast<uint64_t>(std::popcount(frontier_[device]));
        counts.diameter = hops;
        counts.reached_pairs += reached;
        counts.hops_sum += reached * hops;
      }
    }
    const uint64_t all = sources.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << sources.size()) - 1;
    for (const DeviceId gpu : fabric_.gpus()) {
      const uint64_t missing = all & ~seen_[gpu];
      if (missing == 0) continue;
      counts.unreached_pairs += static_cast<uint64_t>(std::popcount(missing));
      counts.unreached_from = sources[static_cast<size_t>(std::countr_zero(missing))];
      counts.unreached_to = gpu;
    }
  }

 private:
  // Goes one link further.
  void Step() {
    for (const DeviceId device : active_) {
      for (const DeviceId neighbour : neighbours_.Of(device)) {
        if (next_[neighbour] == 0) touched_.push_back(neighbour);
        next_[neighbour] |= frontier_[device];
      }
    }
    for (const DeviceId device : active_) frontier_[device] = 0;
    active_.clear();
    for (const DeviceId device : touched_) {
      const uint64_t reached = std::exchange(next_[device], 0) & ~seen_[device];
      if (reached == 0) continue;
      seen_[device] |= reached;
      frontier_[device] = reached;
      active_.push_back(device);
    }
    touched_.clear();
  }

  const FabricGraph& fabric_;
  const Neighbours& neighbours_;
  // A bit per source of the batch, by device.
  std::vector<uint64_t> seen_;
  std::vector<uint64_t> frontier_;
  std::vector<uint64_t> next_;
  std::vector<bool> is_gpu_;
  std::vector<DeviceId> active_;   // whose frontier_ is not 0
  std::vector<DeviceId> touched_;  // whose next_ is not 0, within a step
};

}  // namespace

HopCounts CountHops(const FabricGraph& fabric, const std::vector<DeviceId>& sources) {
  const Neighbours neighbours(fabric);
  Batch batch(fabric, neighbours);
  HopCounts counts;
  uint32_t diameter = 0;
  for (size_t i = 0; i < sources.size(); i += 64) {
    const size_t count = std::min<size_t>(64, sources.size() - i);
    batch.Run({sources.data() + i, count}, counts);
    diameter = std::max(diameter, counts.diameter);
  }
  counts.diameter = diameter;
  return counts;
}

std::vector<DeviceId> SampleGpus(const FabricGraph& fabric, size_t most) {
  const std::vector<DeviceId>& gpus = fabric.gpus();
  if (gpus.size() <= most) return gpus;
  std::vector<DeviceId> sample;
  for (size_t i = 0; i < most; ++i) sample.push_back(gpus[i * gpus.size() / most]);
  return sample;
}

}  // namespace railyard
