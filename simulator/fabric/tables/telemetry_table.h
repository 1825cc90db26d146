// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/telemetry.h"

namespace railyard {

// Holds the telemetry of all packets, by packet. It costs nothing unless it is enabled.
class TelemetryTable {
 public:
  // `tables` must outlive this.
  explicit TelemetryTable(FabricTables& tables) : tables_(tables) {}

  // Makes the ports of switches Stamp() data packets that join their queues.
  void Enable();
  bool is_enabled() const { return is_enabled_; }
  // Returns nothing unless enabled.
  std::span<const HopTelemetry> Of(PacketId packet) const {
    return packet < collected_.size() ? collected_[packet].span() : std::span<const HopTelemetry>{};
  }
  // Removes the records of a packet; must be called for a new one. Precondition: telemetry is
  // enabled.
  void Clear(PacketId packet);
  void Copy(PacketId from, PacketId to) {
    if (is_enabled_) CopyEnabled(from, to);
  }
  // Counts a packet that joins its link's queue behind `backlog_ps`, and writes its record if it is
  // of data. Must be called for every packet that joins.
  void Stamp(PacketId packet, int64_t backlog_ps);

 private:
  void CopyEnabled(PacketId from, PacketId to);

  FabricTables& tables_;
  bool is_enabled_ = false;
  std::vector<uint64_t> joined_bytes_;  // by link: those that ever joined its queue
  std::vector<PacketTelemetry> collected_;
};

}  // namespace railyard
