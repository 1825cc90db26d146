// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/cta_clock.h"

#include <algorithm>
#include <bit>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/units.h"

namespace railyard {

uint8_t CtaClock::AddCosts(const StepCosts& costs, const MessageRule& rule) {
  const CostClass added = {costs, rule.line_payload_bytes, rule.line_wire_bytes};
  const auto found = std::find(classes_.begin(), classes_.end(), added);
  const auto number = static_cast<size_t>(found - classes_.begin());
  SIM_CHECK(number <= UINT8_MAX, "too many kinds of costs");
  if (found == classes_.end()) classes_.push_back(added);
  return static_cast<uint8_t>(number);
}

MessageSize CtaClock::SizeOf(uint8_t number, uint64_t data_bytes) const {
  const CostClass& lines = classes_[number];
  if (lines.line_payload_bytes == 1) return MessageSize::OfData(data_bytes);
  const uint64_t count = DivideUp(data_bytes, lines.line_payload_bytes);
  return {count * lines.line_wire_bytes, data_bytes};
}

void CtaClock::ComputeSlice(uint64_t key, const CtaShare& share, uint32_t slice_bytes) {
  const StepCosts& costs = classes_[share.costs].costs;
  last_slice_key_ = key;
  uint64_t bytes = uint64_t{slice_bytes} * share.warps_of / share.warp_parts;
  if (costs.iteration_bytes != 0 && bytes > costs.iteration_bytes) {
    bytes = DivideUp(bytes, costs.iteration_bytes) * costs.iteration_bytes;
  }
  last_slice_ps_ = costs.channel_rate_bps == 0 ? 0 : TransferTimePs(bytes, costs.channel_rate_bps);
}

PartRates CtaClock::RatesOf(uint8_t number, const WarpShare& warps, const WarpShare& other) const {
  const StepCosts& costs = classes_[number].costs;
  if (costs.parts_rate_bps == 0) return {};
  const uint64_t limit_bps = costs.parts_rate_bps / warps.of;
  const auto alone_bps = [&](const WarpShare& part) {
    return std::min(part.warps * costs.warp_rate_bps, limit_bps);
  };
  const uint64_t fair_bps = std::max(limit_bps / 2, limit_bps - alone_bps(other));
  return {.alone_bps = alone_bps(warps), .beside_bps = std::min(alone_bps(warps), fair_bps)};
}

int64_t CtaClock::PartPs(const PartRates& rates, int64_t alone_ps, int64_t beside_ps) {
  if (beside_ps <= 0) return alone_ps;
  const double share = rates.BesideShare();
  const auto over_ps = static_cast<int64_t>(static_cast<double>(beside_ps) * share);
  if (over_ps < alone_ps) return beside_ps + alone_ps - over_ps;
  return static_cast<int64_t>(static_cast<double>(alone_ps) / share);
}

int64_t CtaClock::RoundPs(const CtaShare& share, uint32_t round_bytes) const {
  const StepCosts& costs = classes_[share.costs].costs;
  if (costs.round_rate_bps == 0) return 0;
  return costs.round_overhead_ps + TransferTimePs(round_bytes, costs.round_rate_bps);
}

void CtaClock::Visit(StateArchive& archive) const {
  archive.Constant(speeds_.size());
  for (const double speed : speeds_) archive.Constant(std::bit_cast<uint64_t>(speed));
}

void CtaClock::VisitGpu(GpuIndex gpu, StateArchive& archive) const {
  archive.Named("speed of a GPU").Constant(std::bit_cast<uint64_t>(SpeedOf(gpu)));
}

}  // namespace railyard
