// SPDX-License-Identifier: GPL-2.0-only
// Programs that run, as channels and lanes, and where each lane is in its schedule: which slice is
// at hand, which connections it uses, which messages its senders may be granted.
//
// A channel has batches, one after the other; the lanes of a batch run concurrently. A lane takes
// its schedule's steps in order, each slice by slice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/timing_wheel.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane.h"

namespace railyard {

class LaneTable {
 public:
  // Both references must outlive this. The engine's prefetches know where it is.
  LaneTable(const ConnectionTable& table, const CtaClock& clock) : table_(table), clock_(clock) {}
  LaneTable(const LaneTable&) = delete;
  LaneTable& operator=(const LaneTable&) = delete;

  // --- Channels ----------------------------------------------------------------------------------
  ChannelIndex OpenChannel(const RankProgram& program, uint32_t channel, int64_t now_ps);
  // Goes on to the next batch that has lanes, from the one at hand on. Returns how many; 0: the
  // channel has none left.
  uint32_t NextBatch(ChannelIndex channel);
  // Its record stays as it is until another one opens.
  void CloseChannel(ChannelIndex channel);
  ActiveChannel& channel(ChannelIndex id) { return channels_[id]; }
  const ActiveChannel& channel(ChannelIndex id) const { return channels_[id]; }

  // --- Lanes -------------------------------------------------------------------------------------
  // A lane of the channel's batch at hand, by its number in the batch; its first slice is at hand.
  LaneIndex OpenLane(ChannelIndex channel, uint32_t number);
  // Returns whether it was the last one of its batch.
  bool CloseLane(LaneIndex lane);
  // Ends all lanes of a part of the job where they are.
  void EndPart(uint32_t part);

  uint32_t size() const { return static_cast<uint32_t>(lanes_.size()); }
  Lane& lane(LaneIndex id) { return lanes_[id]; }
  const Lane& lane(LaneIndex id) const { return lanes_[id]; }
  LaneIndex IndexOf(const Lane& lane) const { return LaneIndex{&lane - lanes_.data()}; }
  const LaneProgram& position(LaneIndex id) const { return positions_[id]; }
  const RankProgram& ProgramOf(LaneIndex id) const {
    return channels_[positions_[id].channel].program;
  }
  uint32_t GpuOf(LaneIndex id) const {
    const RankProgram& program = ProgramOf(id);
    return table_.GpuOfRank(program.communicator, program.rank);
  }
  // Precondition: the lane has several peers.
  LaneConnections& connections(const Lane& lane) { return connections_[lane.peers]; }
  const LaneConnections& connections(const Lane& lane) const { return connections_[lane.peers]; }
  // For the engine's prefetches.
  TimingWheel::PrefetchTable Records() const { return {&lanes_base_, sizeof(Lane)}; }

  // --- Slices ------------------------------------------------------------------------------------
  // Goes on to the next slice; steps_left is 0 behind the last.
  void NextSlice(LaneIndex id) {
    Lane& lane = lanes_[id];
    if (--lane.slices_left > 0) {
      // All slices of a chunk are as long as the first, until it ends.
      lane.slice_bytes = std::min(lane.first_bytes, lane.rest_bytes);
      lane.rest_bytes -= lane.slice_bytes;
    } else if (--lane.steps_left > 0) {
      BeginStep(lane);
    } else {
      LoadSteps(id);
    }
  }
  // Which of its connections the step at hand uses, of a lane with several peers that has them.
  void SetStepConnections(LaneIndex id);

  // --- Grants ------------------------------------------------------------------------------------
  // Calls `grant` for every message that the lane is to receive over the connection, in order, as
  // long as `may_grant` says so.
  template <typename MayGrant, typename Grant>
  void GrantMessages(LaneIndex id, ConnectionId connection, MayGrant may_grant, Grant grant);

 private:
  struct GrantedSide {
    GrantCursor* cursor = nullptr;
    int32_t sender = kAllPeers;
  };
  GrantedSide GrantedSideOf(LaneIndex id, ConnectionId connection);
  // Whether there is a message more from that sender, which the cursor then has counted.
  bool TakeMessage(const LaneProgram& position, const GrantedSide& side, uint8_t slices_per_chunk);
  // Loads the next row of steps.
  void LoadSteps(LaneIndex id);
  void BeginStep(Lane& lane) {
    lane.slices_left = lane.slices_per_chunk;
    lane.slice_bytes = lane.first_bytes;
    lane.rest_bytes = lane.step_bytes - lane.first_bytes;
  }
  LaneIndex NewLane();
  uint32_t NewConnections(const LanePeers& listed);

  const ConnectionTable& table_;
  const CtaClock& clock_;
  std::vector<ActiveChannel> channels_;
  std::vector<Lane> lanes_;
  const char* lanes_base_ = nullptr;    // of lanes_, for the engine's prefetches
  std::vector<LaneProgram> positions_;  // by lane
  std::vector<LaneConnections> connections_;
  ChannelIndex free_channel_ = ChannelIndex::kNone;
  LaneIndex free_lane_ = LaneIndex::kNone;
  uint32_t free_connections_ = Connection::kNone;
};

template <typename MayGrant, typename Grant>
void LaneTable::GrantMessages(LaneIndex id, ConnectionId connection, MayGrant may_grant,
                              Grant grant) {
  const GrantedSide side = GrantedSideOf(id, connection);
  while (may_grant() && TakeMessage(positions_[id], side, lanes_[id].slices_per_chunk)) grant();
}

}  // namespace railyard
