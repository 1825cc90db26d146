// SPDX-License-Identifier: GPL-2.0-only
// How long a CTA takes: its copy or reduction of a slice takes bytes / channel_rate, and between
// two slices it spends an overhead. On a slow GPU both take longer; a GPU that stands still begins
// nothing, and what it has begun ends as it would have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/state/state_archive.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/units/time_end.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

// The part of a CTA that a lane has, and what its steps cost.
struct CtaShare {
  uint8_t costs = 0;       // CtaClock::AddCosts
  uint8_t warp_parts = 1;  // WarpShare's
  uint8_t warps_of = 1;
  uint8_t steps_at_once = 1;  // that share one overhead
};

class CtaClock {
 public:
  explicit CtaClock(size_t gpu_count) : gpu_count_(gpu_count) {}

  // --- Costs -------------------------------------------------------------------------------------
  // Costs for programs to name: a number, the same for the same costs and lines.
  uint8_t AddCosts(const StepCosts& costs, const MessageRule& rule);
  const StepCosts& costs(uint8_t number) const { return classes_[number].costs; }
  // With Simple a flag follows the data. Lines of LL and LL128 carry theirs.
  bool HasFlagBehindData(uint8_t number) const { return classes_[number].line_payload_bytes == 1; }
  // Returns how long a message of so much data is on the wire, and how much of it is data.
  MessageSize SizeOf(uint8_t number, uint64_t data_bytes) const;

  // --- Times, at the GPU's own speed -------------------------------------------------------------
  // To move a slice. The CTA's threads work through it in whole iterations.
  int64_t SlicePs(const CtaShare& share, uint32_t slice_bytes) {
    if (slice_bytes == 0) return 0;
    const uint64_t key = uint64_t{share.costs} << 48 | uint64_t{share.warp_parts} << 40 |
                         uint64_t{share.warps_of} << 32 | slice_bytes;
    if (key != last_slice_key_) ComputeSlice(key, share, slice_bytes);
    return last_slice_ps_;
  }
  // Between two slices.
  int64_t OverheadPs(const CtaShare& share) const {
    return classes_[share.costs].costs.slice_overhead_ps / share.steps_at_once;
  }

  // --- Speeds of GPUs ----------------------------------------------------------------------------
  // From now on what a GPU's CTAs do takes 1 / `speed` as long; with 0 they begin nothing.
  void SetSpeed(uint32_t gpu, double speed) {
    if (speeds_.empty()) speeds_.assign(gpu_count_, 1);
    speeds_[gpu] = speed;
  }
  // No GPU has ever been slow.
  bool AllAtOwnSpeed() const { return speeds_.empty(); }
  double SpeedOf(uint32_t gpu) const { return speeds_.empty() ? 1 : speeds_[gpu]; }
  bool StandsStill(uint32_t gpu) const { return SpeedOf(gpu) == 0; }
  // How long a GPU takes now for what takes one at its own speed so long; the same for one that
  // stands still.
  int64_t AtSpeedOfPs(uint32_t gpu, int64_t time_ps) const {
    const double speed = SpeedOf(gpu);
    return speed == 0 ? time_ps : AtShareOfSpeedPs(time_ps, speed);
  }

  void Visit(StateArchive& archive) const;
  void VisitGpu(uint32_t gpu, StateArchive& archive) const;

 private:
  struct CostClass {
    StepCosts costs;
    uint32_t line_payload_bytes = 1;
    uint32_t line_wire_bytes = 1;
    bool operator==(const CostClass&) const = default;
  };
  void ComputeSlice(uint64_t key, const CtaShare& share, uint32_t slice_bytes);

  std::vector<CostClass> classes_;  // by number
  uint64_t last_slice_key_ = 0;     // what last_slice_ps_ depends on
  int64_t last_slice_ps_ = 0;
  std::vector<double> speeds_;  // by GPU; empty: all at their own
  size_t gpu_count_;
};

}  // namespace railyard
