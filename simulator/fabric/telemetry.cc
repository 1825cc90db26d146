// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/telemetry.h"

#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::EnableTelemetry() {
  telemetry_enabled_ = true;
  joined_bytes_.resize(links_.size());
  for (LinkId id = 0; id < links_.size(); ++id) {
    if (switches_[graph_->link_source(id)] != nullptr) links_[id].send_flags |= Link::kTelemetry;
  }
}

std::span<const HopTelemetry> FabricNetwork::Telemetry(uint32_t packet) const {
  if (packet >= telemetry_.size()) return {};
  return telemetry_[packet].span();
}

void FabricNetwork::CopyTelemetry(uint32_t from, uint32_t to) {
  if (!telemetry_enabled_) return;
  if (telemetry_.size() < packets_.size()) telemetry_.resize(packets_.size());
  telemetry_[to] = telemetry_[from];
}

void FabricNetwork::ClearTelemetry(uint32_t index) {
  if (telemetry_.size() < packets_.size()) telemetry_.resize(packets_.size());
  telemetry_[index].hop_count = 0;
}

void FabricNetwork::StampTelemetry(uint32_t index, int64_t backlog_ps) {
  const Packet& packet = packets_[index];
  if (!IsData(packet.kind)) return;
  const LinkId id = packet.link;
  const uint64_t rate_bps = rates_bps_[id];
  const auto backlog_bits = static_cast<unsigned __int128>(backlog_ps) * rate_bps / kPsPerSecond;
  const uint64_t backlog_bytes = static_cast<uint64_t>(backlog_bits) / 8;
  // What joined and is not there any more was sent.
  const uint64_t joined_bytes = joined_bytes_[id];
  joined_bytes_[id] += packet.wire_bytes;
  PacketTelemetry& telemetry = telemetry_[index];
  if (telemetry.hop_count == PacketTelemetry::kHopsMax) return;
  telemetry.hops[telemetry.hop_count++] = {.time_ps = engine_->NowPs(),
                                           .sent_bytes = joined_bytes - backlog_bytes,
                                           .backlog_bytes = backlog_bytes,
                                           .rate_bps = rate_bps};
}

}  // namespace railyard
