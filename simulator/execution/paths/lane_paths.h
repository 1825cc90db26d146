// SPDX-License-Identifier: GPL-2.0-only
// The critical paths of everything a LaneExecutor has under way: of lanes, channels and the
// messages in a connection's slots. Plain state; the executor keeps it only where it is asked for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/transport/nic/queue_state.h"

namespace railyard {

struct LanePaths {
  using OfSlots = std::array<CriticalPath, kConnectionSlots>;
  // Of a network connection besides.
  struct Network {
    OfSlots consumed;  // the receiver has taken the message: its slot can be granted again
    OfSlots granted;   // the clear-to-send is posted; from its arrival on, that
    std::array<RecoveryTimes, kConnectionSlots> before_grant{};  // of its queue when it was posted
    std::array<RecoveryTimes, kConnectionSlots> before_send{};
    std::vector<uint32_t> first_links;  // of the data path it was opened with
    bool is_rerouted = false;
  };
  struct OfConnection {
    OfSlots sent;     // the sender's copy is complete; over the network then staged, then posted
    OfSlots arrived;  // the receiver sees the message
    OfSlots freed;    // the sender may use the slot again
    std::unique_ptr<Network> network;
  };
  // What decides later paths once nothing is under way.
  struct Kept {
    OfSlots freed;
    OfSlots consumed{};
    OfSlots granted{};
  };
  struct OfLane {
    CriticalPath path;
    int64_t still_since_ps = -1;  // its GPU stands still
  };

  std::vector<OfLane> lanes;
  std::vector<CriticalPath> channels;  // active ones
  std::vector<std::unique_ptr<OfConnection>> connections;
};

}  // namespace railyard
