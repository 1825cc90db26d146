// SPDX-License-Identifier: GPL-2.0-only
// Keeps the pause frames (PFC, IEEE 802.1Qbb) in flight and computes when their receiver obeys.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/state/state_archive.h"

namespace railyard {

// Describes a pause frame. A channel has two events for pause frames, one for XOFF and one for XON.
struct PauseFrame {
  VirtualChannelId channel{};  // whose data stops or resumes
  bool xoff = false;

  constexpr uint32_t event_id() const { return 2 * channel + (xoff ? 0 : 1); }
  static constexpr PauseFrame OfEvent(uint32_t id) {
    return {.channel = VirtualChannelId{id / 2}, .xoff = id % 2 == 0};
  }
};

class PauseFrames {
 public:
  // `tables` must outlive this.
  explicit PauseFrames(FabricTables& tables) : tables_(tables) {}

  void Reset() { last_frame_end_ps_.assign(tables_.channel_count(), 0); }
  // Sends the frame now from the device at the channel's end, and counts it. Returns when the
  // channel's sender obeys. The frame waits for the packet in service on the reverse link and for
  // the channel's earlier frames; serialization, propagation and the response time follow.
  int64_t Send(PauseFrame frame);
  void Visit(VirtualChannelId channel, StateArchive& archive) {
    archive.Named("last_frame_end_ps").Instant(last_frame_end_ps_[channel]);
  }

 private:
  FabricTables& tables_;
  std::vector<int64_t> last_frame_end_ps_;  // by channel, at the port that sends them
};

}  // namespace railyard
