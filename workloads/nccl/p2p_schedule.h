// SPDX-License-Identifier: GPL-2.0-only
// Describes one rank's grouped Send and Recv calls as a CollectiveSchedule: messages are divided
// into parts on channels, and works are grouped into batches (addP2pToPlan, addWorkBatchToPlan and
// scheduleP2pTasksToPlan, src/enqueue.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/collectives/schedule.h"
#include "workloads/job/job.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_channels.h"
#include "workloads/nccl/nccl_settings.h"
#include "workloads/nccl/p2p_order.h"

namespace railyard {

// Describes LL's lines on the wire: 8 of 16 bytes are flags (union ncclLLFifoLine,
// src/include/device.h).
inline constexpr MessageRule kP2pLlRule = {.line_payload_bytes = 8, .line_wire_bytes = 16};

// Warps that send, and warps that receive, where a batch has one work (P2pWarps).
inline constexpr uint32_t kP2pPartWarps = 9;

class P2pSchedule final : public CollectiveSchedule {
 public:
  // Calls to one peer in one direction are served in their order, each in a separate pass over the
  // rounds. Data that the rank sends to itself is copied by a work of its batch; with `in_place` it
  // makes no work (scheduleP2pTasksToPlan).
  P2pSchedule(const CommunicatorLayout& layout, const NcclSettings& settings,
              const CommunicatorChannels& channels, const P2pOrder& order, RankIndex rank,
              const P2pCall* calls, uint32_t call_count, bool in_place);

  uint32_t rank_count() const override { return rank_count_; }
  uint32_t channel_count() const override {
    return static_cast<uint32_t>(channel_batches_.size()) - 1;
  }
  // Returns the rule of messages over the network.
  const MessageRule& message_rule() const override { return network_rule_; }
  const MessageRule& MessageRuleOf(const LaneId& lane) const override;
  // Only the schedule's own rank has batches and lanes.
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  // The works of a batch share the CTA's warps. Some warps of a work send and some receive, or all
  // do the same if it has one direction. The warps of a message over the network are not
  // stated, because it is not known what limits a channel there to less than they copy.
  WarpShare WarpShareOf(const LaneId& lane) const override;
  bool SharesWithLaneBefore(const LaneId& lane) const override { return LaneAt(lane).is_second; }
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;
  uint64_t AlikeFrom(const LaneId& lane, uint64_t step) const override;

 private:
  // Describes a part of one message.
  struct Lane {
    RankIndex peer{0};  // the rank itself for a copy
    bool is_send = false;
    uint64_t offset_bytes = 0;  // of the part within the message
    uint64_t bytes = 0;
    uint64_t chunk_bytes = 0;
    bool network = false;
    bool by_lines = false;   // LL; else Simple
    bool has_other = false;  // its work has another lane
    bool is_second = false;  // which is the lane before
  };
  struct PartRule;    // says how messages are cut
  struct PlacedLane;  // a part with its channel and batch
  static PartRule PartRuleOf(const CommunicatorLayout& layout, const NcclSettings& settings,
                             const CommunicatorChannels& channels);
  std::optional<Lane> PartOf(const P2pCall& call, uint32_t part, const PartRule& rule,
                             bool network) const;
  void Tabulate(const std::vector<PlacedLane>& placed, uint32_t channel_count);
  uint32_t BatchOf(const LaneId& lane) const { return channel_batches_[lane.channel] + lane.batch; }
  const Lane& LaneAt(const LaneId& lane) const {
    return lanes_[batch_lanes_[BatchOf(lane)] + lane.lane];
  }

  RankIndex rank_;
  uint32_t rank_count_;
  MessageRule network_rule_;
  std::vector<uint32_t> channel_batches_;  // first element of batch_lanes_ by channel, then the end
  std::vector<uint32_t> batch_lanes_;      // first element of lanes_ by batch, then the end
  std::vector<uint8_t> batch_works_;       // number of works by batch
  std::vector<Lane> lanes_;
};

}  // namespace railyard
