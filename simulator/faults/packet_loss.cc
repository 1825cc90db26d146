// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/packet_loss.h"

#include <cmath>

#include "simulator/faults/keyed_draw.h"

namespace railyard {
namespace {

constexpr uint64_t kLossStream = 1;
constexpr uint64_t kStateStream = 2;

// Every bit is wrong with the same probability, for itself; a packet with a wrong bit fails its
// CRC.
double PacketErrorRatio(double bit_error_ratio, uint32_t wire_bytes) {
  return -std::expm1(8.0 * wire_bytes * std::log1p(-bit_error_ratio));
}

}  // namespace

bool PacketLoss::Loses(const Packet& packet) {
  const LossSpec& spec = *spec_;
  if (spec.model == LossSpec::Model::kNumbered) {
    const bool is_counted = spec.kind ? packet.kind == *spec.kind : IsData(packet.kind);
    if (!is_counted) return false;
    const uint64_t number = ++asked_;
    return number >= spec.first_number && number - spec.first_number < spec.count;
  }
  const uint64_t number = asked_++;
  const KeyedDraw loss(seed_, kLossStream, number);
  switch (spec.model) {
    case LossSpec::Model::kUniform:
      return loss.IsBelow(spec.probability);
    case LossSpec::Model::kBitErrors:
      return loss.IsBelow(PacketErrorRatio(spec.bit_error_ratio, packet.wire_bytes));
    default: {
      const bool is_lost = loss.IsBelow(is_bad_ ? spec.loss_in_bad : spec.loss_in_good);
      const KeyedDraw state(seed_, kStateStream, number);
      if (state.IsBelow(is_bad_ ? spec.to_good : spec.to_bad)) is_bad_ = !is_bad_;
      return is_lost;
    }
  }
}

}  // namespace railyard
