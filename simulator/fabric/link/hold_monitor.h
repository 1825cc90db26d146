// SPDX-License-Identifier: GPL-2.0-only
// The watch over data that is held: a link whose data was paused, or without credit, for longer
// than the storm threshold is reported, and as a deadlock if it waits for itself.
//
// Whoever begins a hold schedules the check at the time this names, and calls Check() then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/fabric/fabric_tables.h"
#include "simulator/fabric/link/hold_report.h"

namespace railyard {

class HoldMonitor {
 public:
  // `tables` must outlive this.
  explicit HoldMonitor(FabricTables& tables) : tables_(tables) {}

  // The channel's data is held from now on. Returns when it is to be checked; nullopt where an
  // earlier hold's check is still to come, which then names the next time.
  std::optional<int64_t> Begin(VirtualChannelId channel);
  // The check is due: reports a hold that has lasted for the threshold. Returns when it is to be
  // checked again where the hold began later, after a release in between.
  std::optional<int64_t> Check(VirtualChannelId channel);

  // Channels from `start` on, of which each waits for the next and the last for the first; empty
  // where there is no such cycle.
  std::vector<VirtualChannelId> FindCycle(VirtualChannelId start) const;

  const std::vector<HoldReport>& reports() const { return reports_; }

 private:
  bool WaitsFor(VirtualChannelId waiting, VirtualChannelId held) const;

  FabricTables& tables_;
  std::vector<HoldReport> reports_;
};

}  // namespace railyard
