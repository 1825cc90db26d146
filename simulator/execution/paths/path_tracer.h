// SPDX-License-Identifier: GPL-2.0-only
// Maintains the critical paths of all lanes and channels in progress and of the messages in the
// slots of connections. Each callback extends the paths. Lanes and channels have the numbers of
// LaneTable.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/execution/lanes/lane.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/units/job_ids.h"

namespace railyard {

class PathTracer {
 public:
  using OfSlots = std::array<CriticalPath, kConnectionSlots>;
  // Holds the paths of a connection that affect later paths when nothing is in flight.
  struct Kept {
    OfSlots freed;
    OfSlots consumed{};
    OfSlots granted{};
  };
  // Describes a slice that a lane is about to take and send.
  struct Slice {
    LaneIndex lane;
    GpuIndex gpu{0};
    CollectiveIndex collective{};
    uint32_t channel = 0;      // of the collective
    uint32_t lane_number = 0;  // among those of its channel's batch
    uint32_t bytes = 0;
    int64_t free_ps = 0;  // when the lane had finished the slice before
    // Connections whose messages and slots the slice needs to begin: of the whole round, if it
    // begins one.
    std::span<const ConnectionId> receives;
    std::span<const ConnectionId> sends;
    // The connections whose messages the slice itself takes and sends.
    std::span<const ConnectionId> own_receives{};
    std::span<const ConnectionId> own_sends{};
    uint8_t in_flight_messages = 0;
    bool is_empty = false;
    int64_t start_ps = 0;
    int64_t done_ps = 0;
    int64_t slower_overhead_ps = 0;  // increase of the overhead by the GPU's speed
    int64_t usual_ps = 0;            // to move it, at the GPU's own speed
  };

  // Both references must outlive this.
  PathTracer(const FabricSimulatorImpl& engine, const ConnectionTable& table)
      : engine_(engine), table_(table) {}

  // Calls `on_slice` at the start of each slice, except for replayed ones.
  void WatchSlices(std::function<void(const Slice&)> on_slice) { on_slice_ = std::move(on_slice); }

  CriticalPath& OfLane(LaneIndex lane) { return lanes_[lane].path; }
  const CriticalPath& OfChannel(ChannelIndex channel) const { return channels_[channel]; }

  // Called when a channel of a GPU's program begins.
  void StartChannel(ChannelIndex channel, GpuIndex gpu, CollectiveIndex collective);
  // Called when a lane of the channel begins, and when it ends.
  void StartLane(LaneIndex lane, ChannelIndex channel);
  void EndLane(LaneIndex lane, ChannelIndex channel);
  // Called when the lane's GPU begins to stand still.
  void StandStill(LaneIndex lane);
  // Must be called before the slice's messages are taken and sent.
  void OnSlice(const Slice& slice);
  // Called when the lane, which is free at `free_ps`, has taken the message of a slot.
  void OnTaken(LaneIndex lane, ConnectionId connection, uint32_t slot, int64_t free_ps);
  // Called when the lane has posted a message.
  void OnSent(LaneIndex lane, ConnectionId connection, uint32_t slot);
  // Called when a message to a relaying GPU is in its memory, at `here_ps`.
  void OnStored(ConnectionId connection, uint32_t slot, int64_t here_ps);
  // Called when it is known that the receiver sees the message at `seen_ps`.
  void OnSeen(ConnectionId connection, uint32_t slot, int64_t seen_ps);
  // Called when the receiver has loaded the message.
  void OnLoaded(ConnectionId connection, uint32_t slot);
  // Called when the receiver, whose lane belongs to `channel`, grants the next message.
  void OnGrant(ConnectionId connection, ChannelIndex channel, uint8_t in_flight_messages);
  // These functions are called for a message of a network connection: when its grant has arrived,
  // when the proxy queues it, when the proxy has posted it, when it is acknowledged, and when it
  // has arrived.
  void OnGranted(ConnectionId connection, uint32_t slot);
  void OnQueued(ConnectionId connection, uint32_t slot);
  void OnPosted(ConnectionId connection, uint32_t slot);
  void OnCompleted(ConnectionId connection, uint32_t slot);
  void OnArrived(ConnectionId connection, uint32_t slot, int64_t seen_ps);
  // Called before a connection abandons its flow. Messages that were lost on it have waited until
  // now.
  void OnMove(ConnectionId connection);
  void OnRoutesChanged();

  // Returns the paths of connections that have nothing in flight, for PutBack().
  std::vector<Kept> Keep(std::span<const ConnectionId> connections);
  void PutBack(std::span<const ConnectionId> connections, const std::vector<Kept>& kept);

 private:
  // Holds the additional paths of a network connection.
  struct Network {
    OfSlots consumed;  // the receiver has taken the message, so the slot can be granted again
    OfSlots granted;   // the clear-to-send is posted, later: has arrived
    std::array<RecoveryTimes, kConnectionSlots> before_grant{};  // of its queue when it was posted
    std::array<RecoveryTimes, kConnectionSlots> before_send{};
    std::vector<LinkId> first_links;  // of the first data path
    bool is_rerouted = false;
  };
  struct OfConnection {
    OfSlots sent;     // the sender's copy is complete; over the network later staged, then posted
    OfSlots arrived;  // the receiver sees the message
    OfSlots freed;    // the sender may use the slot again
    std::unique_ptr<Network> network;
  };
  struct LaneTrace {
    CriticalPath path;
    int64_t still_since_ps = -1;  // since when its GPU stands still; -1: it does not
  };

  OfConnection& Of(ConnectionId connection);
  // Extends the path of a message or grant by the time since it was posted.
  void TraceWay(ConnectionId connection, bool is_data, const RecoveryTimes& before,
                CriticalPath& path);

  const FabricSimulatorImpl& engine_;
  const ConnectionTable& table_;
  std::vector<LaneTrace> lanes_;
  std::vector<CriticalPath> channels_;  // by channel
  std::vector<std::unique_ptr<OfConnection>> connections_;
  std::function<void(const Slice&)> on_slice_;
};

}  // namespace railyard
