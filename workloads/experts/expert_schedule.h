// SPDX-License-Identifier: GPL-2.0-only
// Describes one rank's part of an expert kernel's dispatch or combine as a CollectiveSchedule.
//
// Normal kernels: a token is sent once to each server, or what the kernel takes for one, that has
// any of its experts, to the GPU with the sender's index there, and that GPU forwards it over
// NVLink to each GPU with one of them. Combine takes the same paths back: a GPU adds up the results
// of its server's GPUs for a token and returns one sum. A channel forwards a chunk as soon as it
// has arrived. Channel `c x servers + s` of the schedule is the part of the kernel's channel c that
// carries tokens of server s, which is a separate ring buffer in the kernel.
//
// Low-latency kernels: every token is sent to each of its experts' ranks by one write between NICs,
// even within a server. A channel is a queue pair of each pair of ranks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "workloads/collectives/schedule.h"
#include "workloads/experts/expert_kernels.h"
#include "workloads/job/job.h"
#include "workloads/nccl/communicator_layout.h"

namespace railyard {

class ExpertSchedule final : public CollectiveSchedule {
 public:
  // `calls` are the rank's hops (ExpertCall), all of one kernel. The bytes of each are a multiple
  // of its token's bytes.
  ExpertSchedule(const CommunicatorLayout& layout, RankIndex rank, std::span<const P2pCall> calls);

  uint32_t rank_count() const override { return rank_count_; }
  uint32_t channel_count() const override { return static_cast<uint32_t>(channels_.size()); }
  const MessageRule& message_rule() const override { return network_rule_; }
  const MessageRule& MessageRuleOf(const LaneId& lane) const override;
  // Only the schedule's own rank has batches and lanes.
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override { return LaneAt(lane).peers; }
  WarpShare WarpShareOf(const LaneId& lane) const override { return LaneAt(lane).warps; }
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;
  uint64_t AlikeFrom(const LaneId& lane, uint64_t step) const override;

 private:
  // Describes consecutive steps that differ only in their offsets.
  struct Row {
    uint64_t first = 0;  // step
    Step step;
  };
  struct Lane {
    LanePeers peers;
    WarpShare warps;
    bool network = false;  // a peer is on another server
    uint64_t step_count = 0;
    std::vector<Row> rows;
    std::vector<Step> moved;  // bytes so far, with each peer
  };
  // Counts the tokens of one rank that a rank moves: in the hop between servers, and in the hops
  // within its own server.
  struct Relay {
    uint64_t network_tokens = 0;
    uint64_t own_tokens = 0;  // for its own experts
    std::vector<std::pair<RankIndex, uint64_t>> local;
  };
  // Holds Step::work_per_mille of tokens that cross to another server, for a relay (TokenTime).
  struct Work {
    uint32_t once_per_mille = 0;
    uint32_t copy_per_mille = 1000;
  };
  struct Hop;

  void AddLowLatency(std::span<const P2pCall> calls);
  void AddNormal(std::span<const P2pCall> calls);
  // Adds a hop of tokens to or from one peer that are not forwarded.
  void AddDirect(const Hop& hop);
  void AddRelay(RankIndex owner, uint32_t server, const Relay& relay);
  // Adds the relay's messages of one channel to a lane.
  void FillRelay(RankIndex owner, uint32_t channel, const Relay& relay, Lane& lane) const;
  static void AddSteps(Lane& lane, uint64_t count, const Step& step);
  void Place(uint32_t channel, Lane lane);

  const Lane& LaneAt(const LaneId& lane) const { return channels_[lane.channel][lane.lane]; }
  const Row& RowAt(const Lane& lane, uint64_t step) const;

  RankIndex rank_;
  uint32_t rank_count_;
  ExpertCall call_;  // common to all calls
  uint32_t servers_ = 1;
  uint32_t server_ranks_ = 1;
  TokenChunks chunks_;
  Work work_;
  MessageRule network_rule_;
  MessageRule nvlink_rule_;
  std::vector<std::vector<Lane>> channels_;
};

}  // namespace railyard
