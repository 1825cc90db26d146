// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/event_order/event_order.h"
#include "simulator/execution/connections/connection.h"
#include "simulator/execution/lanes/lane.h"

namespace railyard {

// Keeps the lanes to be examined before the current event ends, and the events that wake lanes
// later. Code that changes what a lane waits for wakes the lane here, and LaneRunner then examines
// it.
class LaneWakes {
 public:
  // The engine must outlive this.
  explicit LaneWakes(FabricSimulatorImpl& engine) : engine_(engine) {}

  void Wake(LaneIndex lane) { woken_.push_back(lane); }
  // Schedules an event that wakes the lane at `time_ps`, when its slice may start.
  void WakeAt(int64_t time_ps, uint64_t tie, LaneIndex lane) {
    engine_.ScheduleFabric(time_ps, event_order::kChannel, tie, lane);
  }
  // Wakes the lane that waits for a message of the connection. The lane sees the message at
  // `seen_ps` and cannot start before then, so only then it checks whether it can also send.
  void WakeReceiver(MessageSlots& slots, int64_t seen_ps) {
    if (!slots.receiver_waits) return;
    slots.receiver_waits = false;
    const int64_t start_ps = std::max(seen_ps, slots.receiver_free_ps);
    const LaneIndex receiver = slots.receiver;
    if (start_ps > engine_.NowPs()) {
      WakeAt(start_ps, slots.receiver_tie, receiver);
    } else {
      Wake(receiver);
    }
  }
  // Wakes the lane that waits for a free slot of the connection.
  void WakeSender(MessageSlots& slots) {
    if (!slots.sender_waits) return;
    slots.sender_waits = false;
    Wake(slots.sender);
  }

  bool empty() const { return woken_.empty(); }
  // Calls `look` for every lane on the list, including those added meanwhile, and empties the list.
  template <typename Look>
  void TakeAll(Look look) {
    for (size_t i = 0; i < woken_.size(); ++i) look(woken_[i]);
    woken_.clear();
  }

 private:
  FabricSimulatorImpl& engine_;
  std::vector<LaneIndex> woken_;
};

}  // namespace railyard
