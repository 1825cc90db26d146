// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "simulator/execution/connections/connection.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/fabric/tables/packet.h"
#include "simulator/units/job_ids.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Declares the callbacks for events of lanes and connections. The replay engine implements it.
class LaneObserver {
 public:
  virtual ~LaneObserver() = default;
  // Called when the last lane of a channel's last batch has finished. The channel's end, `end_ps`,
  // may lie in the future. `path` is its critical path, or null if paths are not kept.
  virtual void OnChannelFinished(RunningIndex operation, int64_t end_ps,
                                 const CriticalPath* path) = 0;
  // Called for the events of a connection's flows that MessageSink describes.
  virtual void OnPacketLost(ConnectionId connection, const FlowLoss& loss) = 0;
  virtual void OnPacketRepeated(ConnectionId connection, uint32_t payload_bytes) = 0;
  virtual void OnRetransmission(ConnectionId connection) = 0;
  virtual void OnLossRecovered(ConnectionId connection) = 0;
  // Called when a connection has failed permanently (MessageSink::OnFailed).
  virtual void OnConnectionError(ConnectionId connection, bool at_sender,
                                 const std::string& why) = 0;
  // Called when a GPU has received payload of a watched collective.
  virtual void OnPayloadTaken(CollectiveIndex /*collective*/, uint64_t /*bytes*/) {}
  // Called when a connection changes to a detour over NICs of other GPUs. `gpus` are its ends and
  // the GPUs in between.
  virtual void OnDetour(std::span<const GpuIndex> /*gpus*/) {}
};

}  // namespace railyard
