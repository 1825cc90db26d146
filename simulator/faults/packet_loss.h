// SPDX-License-Identifier: GPL-2.0-only
// Keeps the state of one loss model on one link. The model decides which packets the link loses to
// a fault.
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "simulator/faults/fault_spec.h"

namespace railyard {

class PacketLoss {
 public:
  // `seed` is that of the fault and the link. `spec` must outlive this.
  PacketLoss(const LossSpec& spec, uint64_t seed) : spec_(&spec), seed_(seed) {}

  // Returns whether the link loses this packet. Must be called once per packet, in the order of
  // arrival.
  bool Loses(const Packet& packet);

 private:
  const LossSpec* spec_;
  uint64_t seed_;
  uint64_t asked_ = 0;  // packets; for kNumbered, those of its kind
  bool is_bad_ = false;
};

}  // namespace railyard
