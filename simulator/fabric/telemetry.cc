// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::EnableTelemetry() { telemetry_.resize(1); }

std::span<const HopTelemetry> FabricNetwork::Telemetry(uint32_t packet) const {
  if (packet >= telemetry_.size()) return {};
  return telemetry_[packet].span();
}

void FabricNetwork::CopyTelemetry(uint32_t from, uint32_t to) {
  if (telemetry_.empty()) return;
  if (telemetry_.size() < packets_.size()) telemetry_.resize(packets_.size());
  telemetry_[to] = telemetry_[from];
}

}  // namespace railyard
