// SPDX-License-Identifier: GPL-2.0-only
// Computes how long a CTA takes. Copying or reducing a slice takes bytes / channel_rate, and the
// CTA spends an overhead between two slices. Both take longer on a slow GPU. A GPU that stands
// still begins nothing new, and work it has already begun ends at its original time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/state/state_archive.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/units/time_end.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/gpu_costs.h"

namespace railyard {

// Holds a lane's share of a CTA and the number of its cost class.
struct CtaShare {
  uint8_t costs = 0;          // CtaClock::AddCosts
  uint8_t warp_parts = 1;     // WarpShare's
  uint8_t warps_of = 1;       // 0: slices take no time
  uint8_t steps_at_once = 1;  // that share one overhead
};

// Holds the rates of a part of a CTA that has warps of its own: while the other part rests, and
// while both move. In the second case both together do not exceed their common limit.
struct PartRates {
  uint64_t alone_bps = 0;  // 0: the lane has a fixed share of the CTA
  uint64_t beside_bps = 0;

  double BesideShare() const {
    return static_cast<double>(beside_bps) / static_cast<double>(alone_bps);
  }
};

class CtaClock {
 public:
  explicit CtaClock(size_t gpu_count) : gpu_count_(gpu_count) {}

  // --- Costs -------------------------------------------------------------------------------------
  // Registers a class of costs and returns its number. Equal costs and message rules share a
  // number.
  uint8_t AddCosts(const StepCosts& costs, const MessageRule& rule);
  const StepCosts& costs(uint8_t number) const { return classes_[number].costs; }
  // Returns whether a flag follows the data, as with Simple. Lines of LL and LL128 contain their
  // flags.
  bool HasFlagBehindData(uint8_t number) const { return classes_[number].line_payload_bytes == 1; }
  // Returns the size of a message with `data_bytes` of payload on the wire, flags included.
  MessageSize SizeOf(uint8_t number, uint64_t data_bytes) const;

  // --- Times, at the GPU's own speed -------------------------------------------------------------
  // Returns how long moving a slice takes. The CTA's threads process it in whole iterations.
  int64_t SlicePs(const CtaShare& share, uint32_t slice_bytes) {
    if (slice_bytes == 0) return 0;
    const uint64_t key = uint64_t{share.costs} << 48 | uint64_t{share.warp_parts} << 40 |
                         uint64_t{share.warps_of} << 32 | slice_bytes;
    if (key != last_slice_key_) ComputeSlice(key, share, slice_bytes);
    return last_slice_ps_;
  }
  // Returns the rates of a part of the CTA. It shares a WarpShare::of-th of the CTA's limit with
  // `other`, which has no warps if there is no other part.
  PartRates RatesOf(uint8_t number, const WarpShare& warps, const WarpShare& other) const;
  // Returns how long a part takes for what takes `alone_ps` alone, while the other part moves for
  // `beside_ps` more.
  static int64_t PartPs(const PartRates& rates, int64_t alone_ps, int64_t beside_ps);
  // Returns by how much a part that has moved as if alone was too fast, in time alone, if the other
  // part has moved for `beside_ps` of that time.
  static int64_t AheadPs(const PartRates& rates, int64_t beside_ps) {
    return beside_ps - static_cast<int64_t>(static_cast<double>(beside_ps) * rates.BesideShare());
  }
  // Returns the minimum time from the start of a round to the start of the next, overhead included.
  // 0 means no limit.
  int64_t RoundPs(const CtaShare& share, uint32_t round_bytes) const;
  // Returns the overhead between two slices.
  int64_t OverheadPs(const CtaShare& share) const {
    return classes_[share.costs].costs.slice_overhead_ps / share.steps_at_once;
  }

  // --- Speeds of GPUs ----------------------------------------------------------------------------
  // Sets the speed of a GPU from now on: its CTAs take 1 / `speed` times as long. With speed 0 they
  // begin nothing.
  void SetSpeed(GpuIndex gpu, double speed) {
    if (speeds_.empty()) speeds_.assign(gpu_count_, 1);
    speeds_[gpu] = speed;
  }
  // Returns whether no GPU's speed was ever changed.
  bool AllAtOwnSpeed() const { return speeds_.empty(); }
  double SpeedOf(GpuIndex gpu) const { return speeds_.empty() ? 1 : speeds_[gpu]; }
  bool StandsStill(GpuIndex gpu) const { return SpeedOf(gpu) == 0; }
  // Converts a duration at the GPU's own speed to one at its current speed. Returns it unchanged
  // for a GPU that stands still.
  int64_t AtSpeedOfPs(GpuIndex gpu, int64_t time_ps) const {
    const double speed = SpeedOf(gpu);
    return speed == 0 ? time_ps : AtShareOfSpeedPs(time_ps, speed);
  }
  // Converts a duration at the GPU's current speed to one at its own speed.
  int64_t AtOwnSpeedPs(GpuIndex gpu, int64_t time_ps) const {
    const double speed = SpeedOf(gpu);
    return speed == 1 || speed == 0 ? time_ps
                                    : static_cast<int64_t>(static_cast<double>(time_ps) * speed);
  }

  void Visit(StateArchive& archive) const;
  void VisitGpu(GpuIndex gpu, StateArchive& archive) const;

 private:
  struct CostClass {
    StepCosts costs;
    uint32_t line_payload_bytes = 1;
    uint32_t line_wire_bytes = 1;
    bool operator==(const CostClass&) const = default;
  };
  void ComputeSlice(uint64_t key, const CtaShare& share, uint32_t slice_bytes);

  std::vector<CostClass> classes_;  // by number
  uint64_t last_slice_key_ = 0;     // the arguments that last_slice_ps_ depends on
  int64_t last_slice_ps_ = 0;
  std::vector<double> speeds_;  // by GPU; empty: all at their own
  size_t gpu_count_;
};

}  // namespace railyard
