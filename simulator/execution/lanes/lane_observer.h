// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simulator/execution/lanes/critical_path.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Hears what becomes of lanes and connections: the interface of the replay engine and the
// recorders.
class LaneObserver {
 public:
  virtual ~LaneObserver() = default;
  // The last lane of a channel's last batch is done at `end_ps`, now or soon; how that came about,
  // or null where paths are not kept.
  virtual void OnChannelFinished(uint32_t operation, int64_t end_ps, const CriticalPath* path) = 0;
  virtual void OnPacketLost(uint32_t connection, LinkId link) = 0;
  virtual void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) = 0;
  virtual void OnRetransmission(uint32_t connection) = 0;
  virtual void OnLossRecovered(uint32_t connection) = 0;
  virtual void OnConnectionError(uint32_t connection, bool at_sender, const std::string& why) = 0;
  // A GPU took in payload of a collective that is watched.
  virtual void OnPayloadTaken(uint32_t /*collective*/, uint64_t /*bytes*/) {}
  // A connection goes over NICs of other GPUs from now on: these, its ends and in between.
  virtual void OnDetour(std::span<const uint32_t> /*gpus*/) {}
};

}  // namespace railyard
