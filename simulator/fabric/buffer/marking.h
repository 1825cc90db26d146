// SPDX-License-Identifier: GPL-2.0-only
// Explicit congestion notification: RED on the queue of the moment, as a packet joins it. The
// queue is measured in the time it takes to send.
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

  // By device, the settings of its ports; null: they never mark. What is pointed to must outlive
  // this.
  void SetSettings(std::vector<const BufferSettings*> of_device) {
    of_device_ = std::move(of_device);
  }
  // Writes the backlog from which on Mark() is to be asked to the link's row. Is to be called again
  // when the link's rate has changed.
  void SetThreshold(LinkId link);
  // The backlog, in the time it takes to send, above which packets may be marked; kNeverPs: never.
  int64_t StartPs(LinkId link) const;
  // Whether a packet that joins its link's queue behind such a backlog is marked; marks and counts
  // it. The draw depends on seed, packet and link alone.
  bool Mark(Packet& packet, int64_t backlog_ps);

 private:
  const BufferSettings* SettingsOf(LinkId link) const {
    return of_device_[tables_.graph->link_source(link)];
  }

  FabricTables& tables_;
  std::vector<const BufferSettings*> of_device_;
};

}  // namespace railyard
