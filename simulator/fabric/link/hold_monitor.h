// SPDX-License-Identifier: GPL-2.0-only
// Monitors held data. It reports a link whose data was paused, or without credit, for as long as
// the storm threshold; the report is a deadlock if the link waits for itself.
//
// The caller of Begin() schedules an event at the returned time, and calls Check() there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/fabric/link/hold_report.h"
#include "simulator/fabric/tables/fabric_tables.h"

namespace railyard {

class HoldMonitor {
 public:
  // `tables` must outlive this.
  explicit HoldMonitor(FabricTables& tables) : tables_(tables) {}

  // Starts a hold of the channel's data. Returns when it must be checked. Returns nothing if the
  // check of an earlier hold is still pending; that check then returns the time of the next one.
  std::optional<int64_t> Begin(VirtualChannelId channel);
  // Reports a hold that has lasted for the threshold. If the hold began later, after a release in
  // between, returns when it must be checked again.
  std::optional<int64_t> Check(VirtualChannelId channel);

  // Returns the channels of a cycle that begins with `start`. Each of them waits for the next, and
  // the last one for the first. The result is empty if there is no such cycle.
  std::vector<VirtualChannelId> FindCycle(VirtualChannelId start) const;

  const std::vector<HoldReport>& reports() const { return reports_; }

 private:
  bool WaitsFor(VirtualChannelId waiting, VirtualChannelId held) const;

  FabricTables& tables_;
  std::vector<HoldReport> reports_;
};

}  // namespace railyard
