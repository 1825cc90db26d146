// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/mesh_rings.h"

#include <algorithm>
#include <limits>

namespace railyard {
namespace {

using Lanes = std::vector<std::vector<uint32_t>>;
using Ring = std::vector<uint32_t>;

// Full meshes of many GPUs have far more rings than are needed: the search is bounded.
constexpr size_t kRingsMax = 10'000;
constexpr size_t kStepsMax = 100'000;

// Rings through all GPUs, each in one of its directions, in the order of their GPUs.
class RingFinder {
 public:
  explicit RingFinder(const Lanes& lanes) : lanes_(lanes), taken_(lanes.size()), ring_{0} {
    taken_[0] = true;
    Extend();
  }
  std::vector<Ring> Take() && { return std::move(found_); }

 private:
  void Extend() {
    if (found_.size() == kRingsMax) return;
    const uint32_t last = ring_.back();
    if (ring_.size() == lanes_.size()) {
      if (lanes_[last][0] > 0 && ring_[1] <= last) found_.push_back(ring_);
      return;
    }
    for (uint32_t next = 1; next < lanes_.size(); ++next) {
      if (taken_[next] || lanes_[last][next] == 0) continue;
      taken_[next] = true;
      ring_.push_back(next);
      Extend();
      ring_.pop_back();
      taken_[next] = false;
    }
  }

  const Lanes& lanes_;
  std::vector<bool> taken_;
  Ring ring_;
  std::vector<Ring> found_;
};

template <typename Visit>
void ForEachHop(const Ring& ring, Visit visit) {
  for (size_t i = 0; i < ring.size(); ++i) visit(ring[i], ring[(i + 1) % ring.size()]);
}

uint32_t WidthOf(const Ring& ring, const Lanes& lanes) {
  uint32_t width = std::numeric_limits<uint32_t>::max();
  ForEachHop(ring, [&](uint32_t a, uint32_t b) { width = std::min(width, lanes[a][b]); });
  return width;
}

// Decides how often each ring is taken, so that the total is as large as possible.
class RingPacker {
 public:
  RingPacker(const std::vector<Ring>& rings, Lanes lanes)
      : rings_(rings), left_(std::move(lanes)), times_(rings.size()), best_(rings.size()) {
    Pack(0, 0);
  }
  const std::vector<uint32_t>& times() const { return best_; }

 private:
  // Every ring takes two NVLinks of each GPU (of two GPUs, one).
  uint32_t MostThatFit() const {
    uint32_t fewest = std::numeric_limits<uint32_t>::max();
    for (const auto& of_gpu : left_) {
      uint32_t links = 0;
      for (const uint32_t to_peer : of_gpu) links += to_peer;
      fewest = std::min(fewest, left_.size() == 2 ? links : links / 2);
    }
    return fewest;
  }

  void Pack(size_t ring, uint32_t count) {
    if (count > best_count_) {
      best_count_ = count;
      best_ = times_;
    }
    if (ring == rings_.size() || count + MostThatFit() <= best_count_ || ++steps_ > kStepsMax) {
      return;
    }
    const uint32_t width = WidthOf(rings_[ring], left_);
    for (uint32_t times = width; times != std::numeric_limits<uint32_t>::max(); --times) {
      Use(rings_[ring], times, -1);
      times_[ring] = times;
      Pack(ring + 1, count + times);
      times_[ring] = 0;
      Use(rings_[ring], times, 1);
    }
  }

  // Uses the links in both directions, which a ring of two GPUs does already.
  void Use(const Ring& ring, uint32_t times, int sign) {
    ForEachHop(ring, [&](uint32_t a, uint32_t b) {
      const auto used = sign * static_cast<int64_t>(times);
      left_[a][b] = static_cast<uint32_t>(left_[a][b] + used);
      if (ring.size() > 2) left_[b][a] = static_cast<uint32_t>(left_[b][a] + used);
    });
  }

  const std::vector<Ring>& rings_;
  Lanes left_;
  std::vector<uint32_t> times_;
  std::vector<uint32_t> best_;
  uint32_t best_count_ = 0;
  size_t steps_ = 0;
};

}  // namespace

std::vector<std::vector<uint32_t>> FindMeshRings(const std::vector<std::vector<uint32_t>>& lanes) {
  if (lanes.size() < 2) return {};
  std::vector<Ring> rings = RingFinder(lanes).Take();
  std::stable_sort(rings.begin(), rings.end(), [&](const Ring& a, const Ring& b) {
    return WidthOf(a, lanes) > WidthOf(b, lanes);
  });
  const RingPacker packer(rings, lanes);
  std::vector<Ring> chosen;
  for (size_t i = 0; i < rings.size(); ++i) {
    const uint32_t times = packer.times()[i];
    chosen.insert(chosen.end(), times, rings[i]);
    Ring reversed = rings[i];
    std::reverse(reversed.begin() + 1, reversed.end());
    // Both directions between two GPUs are one ring.
    if (reversed != rings[i]) chosen.insert(chosen.end(), times, reversed);
  }
  return chosen;
}

}  // namespace railyard
