// SPDX-License-Identifier: GPL-2.0-only
// An observer of lanes in whose tests no packet is lost and no connection fails.
#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "simulator/execution/lanes/lane_observer.h"

namespace railyard::testing {

class LaneObserverDouble : public LaneObserver {
 public:
  void OnChannelFinished(RunningIndex /*operation*/, int64_t /*end_ps*/,
                         const CriticalPath* /*path*/) override {}
  void OnPacketLost(ConnectionId /*connection*/, const FlowLoss& /*loss*/) override {}
  void OnPacketRepeated(ConnectionId /*connection*/, uint32_t /*payload_bytes*/) override {}
  void OnRetransmission(ConnectionId /*connection*/) override {}
  void OnLossRecovered(ConnectionId /*connection*/) override {}
  void OnConnectionError(ConnectionId /*connection*/, bool /*at_sender*/,
                         const std::string& why) override {
    ADD_FAILURE() << why;
  }
};

}  // namespace railyard::testing
