// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/telemetry_table.h"

namespace railyard {

void TelemetryTable::Enable() {
  is_enabled_ = true;
  joined_bytes_.resize(tables_.links.size());
  for (LinkId id{0}; id < tables_.links.size(); ++id) {
    const DeviceKind source = tables_.graph->device(tables_.graph->link_source(id)).kind;
    if (source == DeviceKind::kSwitch) tables_.links[id].send_flags |= LinkRecord::kTelemetry;
  }
}

void TelemetryTable::CopyEnabled(PacketId from, PacketId to) {
  if (collected_.size() < tables_.packets.size()) collected_.resize(tables_.packets.size());
  collected_[to] = collected_[from];
}

void TelemetryTable::Clear(PacketId index) {
  if (collected_.size() < tables_.packets.size()) collected_.resize(tables_.packets.size());
  collected_[index].hop_count = 0;
}

void TelemetryTable::Stamp(PacketId index, int64_t backlog_ps) {
  const Packet& packet = tables_.packets[index];
  const LinkId id = packet.link;
  // All bytes that have joined the queue and are no longer in it were sent.
  const uint64_t joined_bytes = joined_bytes_[id];
  joined_bytes_[id] += packet.wire_bytes;
  if (!IsData(packet.kind)) return;
  const uint64_t rate_bps = tables_.rates_bps[id];
  const auto backlog_bits = static_cast<unsigned __int128>(backlog_ps) * rate_bps / kPsPerSecond;
  const uint64_t backlog_bytes = static_cast<uint64_t>(backlog_bits) / 8;
  PacketTelemetry& telemetry = collected_[index];
  if (telemetry.hop_count == PacketTelemetry::kHopsMax) return;
  telemetry.hops[telemetry.hop_count++] = {.time_ps = tables_.NowPs(),
                                           .sent_bytes = joined_bytes - backlog_bytes,
                                           .backlog_bytes = backlog_bytes,
                                           .rate_bps = rate_bps,
                                           .link = id};
}

}  // namespace railyard
