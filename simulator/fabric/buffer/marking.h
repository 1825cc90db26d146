// SPDX-License-Identifier: GPL-2.0-only
// Marks packets by explicit congestion notification (ECN): RED on the instantaneous queue when a
// packet joins it. The queue's length is measured as its transmission time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/fabric/tables/buffer_settings.h"
#include "simulator/fabric/tables/fabric_tables.h"

namespace railyard {

class Marking {
 public:
  // `tables` must outlive this.
  explicit Marking(FabricTables& tables) : tables_(tables) {}

  // Sets the settings of each device's ports, by device. Ports of a device with null never mark.
  // The settings must outlive this object.
  void SetSettings(std::vector<const BufferSettings*> of_device) {
    of_device_ = std::move(of_device);
  }
  // Stores in the link's row the backlog from which Mark() must be called. This function must be
  // called again when the link's rate has changed.
  void SetThreshold(LinkId link);
  // Returns the backlog, as transmission time, above which packets may be marked, or
  // kNeverPs if none is ever marked.
  int64_t StartPs(LinkId link) const;
  // Decides whether a packet that joins its link's queue behind this backlog is marked, and if so
  // marks and counts it. Returns whether it did. The random draw depends only on the seed, the
  // packet and the link.
  bool Mark(Packet& packet, int64_t backlog_ps);

 private:
  const BufferSettings* SettingsOf(LinkId link) const {
    return of_device_[tables_.graph->link_source(link)];
  }

  FabricTables& tables_;
  std::vector<const BufferSettings*> of_device_;
};

}  // namespace railyard
