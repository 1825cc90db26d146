// SPDX-License-Identifier: GPL-2.0-only
// Marks packets by explicit congestion notification (ECN): RED on the instantaneous queue when a
// packet joins it. The queue's length is measured as its transmission time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/fabric/buffer/buffer_settings.h"
#include "simulator/fabric/fabric_tables.h"

namespace railyard {

class Marking {
 public:
  // `tables` must outlive this.
  explicit Marking(FabricTables& tables) : tables_(tables) {}

  // Sets the settings of the ports of each device; null: they never mark. The settings must outlive
  // this object.
  void SetSettings(std::vector<const BufferSettings*> of_device) {
    of_device_ = std::move(of_device);
  }
  // Writes the backlog from which Mark() has to be called to the link's row. Must be called again
  // when the link's rate has changed.
  void SetThreshold(LinkId link);
  // Returns the backlog, as transmission time, above which packets may be marked; kNeverPs: never.
  int64_t StartPs(LinkId link) const;
  // Decides whether to mark a packet that joins its link's queue behind this backlog, and marks and
  // counts it. The random draw depends only on the seed, the packet and the link.
  bool Mark(Packet& packet, int64_t backlog_ps);

 private:
  const BufferSettings* SettingsOf(LinkId link) const {
    return of_device_[tables_.graph->link_source(link)];
  }

  FabricTables& tables_;
  std::vector<const BufferSettings*> of_device_;
};

}  // namespace railyard
