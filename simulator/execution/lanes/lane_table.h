// SPDX-License-Identifier: GPL-2.0-only
// Owns the running programs, stored as channels and lanes, and the position of each lane in its
// schedule: its current slice, the connections that it uses, and the messages that it may grant to
// its senders.
//
// The batches of a channel run one after the other, the lanes of a batch concurrently. A lane
// executes the steps of its schedule in order, each slice by slice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/timing_wheel.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane.h"
#include "simulator/units/job_ids.h"

namespace railyard {

class LaneTable {
 public:
  // Both references must outlive this object. It cannot be moved, since the engine prefetches its
  // records by address.
  LaneTable(const ConnectionTable& table, CtaClock& clock) : table_(table), clock_(clock) {}
  LaneTable(const LaneTable&) = delete;
  LaneTable& operator=(const LaneTable&) = delete;

  // --- Channels ----------------------------------------------------------------------------------
  // Opens a channel of a program at `now_ps`.
  ChannelIndex OpenChannel(const RankProgram& program, uint32_t channel, int64_t now_ps);
  // Advances to the next batch that has lanes, starting with the current one. Returns its number of
  // lanes, or 0 if the channel has no batch left.
  uint32_t NextBatch(ChannelIndex channel);
  // Frees the channel's record, whose contents stay valid until another channel is opened.
  void CloseChannel(ChannelIndex channel);
  ActiveChannel& channel(ChannelIndex id) { return channels_[id]; }
  const ActiveChannel& channel(ChannelIndex id) const { return channels_[id]; }

  // --- Lanes -------------------------------------------------------------------------------------
  // Opens a lane of the channel's current batch, by its number in the batch, at its first slice.
  LaneIndex OpenLane(ChannelIndex channel, uint32_t number);
  // Frees a lane that has finished. Returns whether it was the last one of its batch.
  bool CloseLane(LaneIndex lane);
  // Ends all lanes of a part of the job wherever they are in their schedules.
  void EndPart(PartIndex part);

  uint32_t size() const { return static_cast<uint32_t>(lanes_.size()); }
  Lane& lane(LaneIndex id) { return lanes_[id]; }
  const Lane& lane(LaneIndex id) const { return lanes_[id]; }
  LaneIndex IndexOf(const Lane& lane) const { return LaneIndex{&lane - lanes_.data()}; }
  const LaneProgram& position(LaneIndex id) const { return positions_[id]; }
  // Returns how long a part of a CTA takes for its current slice from `start_ps` on, at the GPU's
  // own speed.
  int64_t PartSlicePs(LaneIndex id, int64_t start_ps) const;
  // Records that the part moves that slice from `start_ps` to `done_ps`.
  void BeginPartSlice(LaneIndex id, int64_t start_ps, int64_t done_ps);
  const RankProgram& ProgramOf(LaneIndex id) const {
    return channels_[positions_[id].channel].program;
  }
  GpuIndex GpuOf(LaneIndex id) const {
    const RankProgram& program = ProgramOf(id);
    return table_.GpuOfRank(program.communicator, program.rank);
  }
  // Precondition: the lane has several peers.
  LaneConnections& connections(const Lane& lane) { return connections_[lane.peers]; }
  const LaneConnections& connections(const Lane& lane) const { return connections_[lane.peers]; }
  // Returns the location of the lanes' records, for the engine's prefetches.
  TimingWheel::PrefetchTable Records() const { return {&lanes_base_, sizeof(Lane)}; }

  // --- Slices ------------------------------------------------------------------------------------
  // Advances to the next slice. After the last one steps_left is 0.
  void NextSlice(LaneIndex id) {
    Lane& lane = lanes_[id];
    if (--lane.slices_left > 0) {
      // All slices of a chunk are as long as the first, except a shorter last one.
      lane.slice_bytes = std::min(lane.first_bytes, lane.rest_bytes);
      lane.rest_bytes -= lane.slice_bytes;
    } else if (--lane.steps_left > 0) {
      BeginStep(lane);
    } else {
      LoadSteps(id);
    }
  }
  // Sets the connections that the current step uses. Precondition: the lane has several peers and
  // has claimed its connections.
  void SetStepConnections(LaneIndex id);

  // --- Grants ------------------------------------------------------------------------------------
  // Calls `grant` for every message that the lane is to receive over the connection, in order, as
  // long as `may_grant` returns true.
  template <typename MayGrant, typename Grant>
  void GrantMessages(LaneIndex id, ConnectionId connection, MayGrant may_grant, Grant grant);

 private:
  struct GrantedSide {
    GrantCursor* cursor = nullptr;
    int32_t sender = kAllPeers;
  };
  GrantedSide GrantedSideOf(LaneIndex id, ConnectionId connection);
  // Returns whether there is another message to grant to that sender, and if so counts it.
  bool TakeMessage(const LaneProgram& position, const GrantedSide& side, uint8_t slices_per_chunk);
  // Loads the next row of steps.
  void LoadSteps(LaneIndex id);
  void BeginStep(Lane& lane) {
    lane.slices_left = lane.slices_per_chunk;
    lane.slice_bytes = lane.first_bytes;
    lane.rest_bytes = lane.step_bytes - lane.first_bytes;
  }
  void SetRound(const LaneProgram& position, const CtaShare& share, uint64_t step,
                LaneConnections& connections);
  // Makes the lane a part of its CTA if the rate of its warps is known. Precondition: its WarpShare
  // states their number. `before` is the lane that was opened before.
  void SetPart(LaneIndex id, LaneIndex before);
  LaneIndex NewLane();
  LaneConnectionsIndex NewConnections(const LanePeers& listed);

  const ConnectionTable& table_;
  CtaClock& clock_;
  std::vector<ActiveChannel> channels_;
  std::vector<Lane> lanes_;
  const char* lanes_base_ = nullptr;    // of lanes_, for the engine's prefetches
  std::vector<LaneProgram> positions_;  // by lane
  std::vector<LaneConnections> connections_;
  ChannelIndex free_channel_ = ChannelIndex::kNone;
  LaneIndex free_lane_ = LaneIndex::kNone;
  LaneConnectionsIndex free_connections_ = LaneConnectionsIndex::kNone;
};

template <typename MayGrant, typename Grant>
void LaneTable::GrantMessages(LaneIndex id, ConnectionId connection, MayGrant may_grant,
                              Grant grant) {
  const GrantedSide side = GrantedSideOf(id, connection);
  while (may_grant() && TakeMessage(positions_[id], side, lanes_[id].slices_per_chunk)) grant();
}

}  // namespace railyard
