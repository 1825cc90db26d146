// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl_planner.h"

#include <utility>

#include "simulator/diagnostics/check.h"
#include "workloads/channel_split.h"
#include "workloads/p2p_schedule.h"

namespace railyard {
namespace {

constexpr uint64_t kSteps = 8;              // NCCL_STEPS: slots of a connection
constexpr uint64_t kChunkGrainBytes = 512;  // ncclProtoGrainSize of Simple
constexpr uint32_t kSliceGrainElements = 16;

// A communicator of one rank copies locally (ncclLaunchOneRank): no channels, no steps.
class LocalSchedule final : public CollectiveSchedule {
 public:
  uint32_t rank_count() const override { return 1; }
  uint32_t channel_count() const override { return 0; }
  const MessageRule& message_rule() const override { return message_rule_; }
  uint32_t BatchCount(uint32_t, uint32_t) const override { return 0; }
  uint32_t LaneCount(uint32_t, uint32_t, uint32_t) const override { return 0; }
  LanePeers PeersOf(const LaneId&) const override { return {}; }
  uint64_t StepCount(const LaneId&) const override { return 0; }
  Step StepAt(const LaneId&, uint64_t) const override { return {}; }

 private:
  MessageRule message_rule_;
};

// chunkSteps and sliceSteps of Ring Simple (src/include/collectives.h): 4 and 2, so two slices of
// two slots; 1 and 1 for Broadcast and Reduce.
struct StepsRule {
  uint64_t slots_per_chunk = 1;
  uint64_t slots_per_slice = 1;
};
StepsRule StepsRuleOf(CollectiveKind kind) {
  if (kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce) return {1, 1};
  return {4, 2};
}

}  // namespace

NcclPlanner::NcclPlanner(CommunicatorLayout layout, NcclSettings settings)
    : layout_(std::move(layout)),
      settings_(settings),
      channels_(BuildChannels(layout_, settings_)),
      rings_(std::make_shared<RingTable>(channels_.rings)),
      p2p_order_(layout_, settings_.version, channels_.p2p_channel_count),
      gpu_taken_(size_t{layout_.node_count()} * layout_.gpus_per_server) {
  for (const RankPlace& place : layout_.ranks) {
    gpu_taken_[size_t{place.node} * layout_.gpus_per_server + place.local_index] = true;
  }
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanRing(
    const JobCollective& collective) const {
  SIM_CHECK(!collective.is_p2p(), "a point-to-point collective has no ring");
  const uint32_t rank_count = static_cast<uint32_t>(layout_.ranks.size());
  if (rank_count == 1) return std::make_shared<LocalSchedule>();

  // collTaskAppend (src/enqueue.cc) turns what is only copied into bytes.
  uint64_t count = collective.count;
  uint32_t element_bytes = DatatypeBytes(collective.datatype);
  if (collective.kind == CollectiveKind::kAllGather ||
      collective.kind == CollectiveKind::kBroadcast) {
    count *= element_bytes;
    element_bytes = 1;
  }
  const StepsRule steps = StepsRuleOf(collective.kind);
  const uint64_t slot_bytes = settings_.buffsize_bytes / kSteps;

  RingParameters parameters;
  parameters.kind = collective.kind;
  parameters.block_bytes = count * element_bytes;
  parameters.root = collective.root;
  parameters.chunk_bytes = steps.slots_per_chunk * slot_bytes / kChunkGrainBytes * kChunkGrainBytes;
  parameters.shares = SplitOverChannels({settings_.version, collective.kind, count, element_bytes,
                                         rank_count, rings_->channel_count()});
  MessageRule& rule = parameters.message_rule;
  rule.slices_per_chunk = static_cast<uint32_t>(steps.slots_per_chunk / steps.slots_per_slice);
  rule.slice_bytes_min = steps.slots_per_slice * slot_bytes / 32;
  rule.slice_grain_bytes = kSliceGrainElements * element_bytes;
  rule.in_flight_messages = static_cast<uint32_t>(kSteps / steps.slots_per_slice);
  return std::make_shared<RingSchedule>(rings_, std::move(parameters));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanP2p(uint32_t rank, const P2pCall* calls,
                                                               uint32_t call_count) const {
  return std::make_shared<P2pSchedule>(layout_, settings_, channels_, p2p_order_, rank, calls,
                                       call_count);
}

// Send/Recv, ncclTopoGetNetDev (src/graph/search.cc): by the GPU of the sender's server that has
// the destination's local index, where the communicator has a rank there, so that the fabric is
// crossed on the destination's rail.
ConnectionRoute NcclPlanner::RouteOf(uint32_t channel, uint32_t from, uint32_t to, bool p2p) const {
  const RankPlace& source = layout_.ranks[from];
  const RankPlace& target = layout_.ranks[to];
  if (source.node == target.node) return {false, source.local_index};
  if (!p2p) return {true, channels_.sending_nic[channel][from]};
  const bool relay = !settings_.pxn_disable &&
                     gpu_taken_[size_t{source.node} * layout_.gpus_per_server + target.local_index];
  return {true, relay ? target.local_index : source.local_index};
}

}  // namespace railyard
