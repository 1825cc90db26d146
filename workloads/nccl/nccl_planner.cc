// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "workloads/collectives/channel_split.h"
#include "workloads/collectives/direct_schedule.h"
#include "workloads/collectives/explicit_schedule.h"
#include "workloads/collectives/halving_doubling_schedule.h"
#include "workloads/collectives/pat_schedule.h"
#include "workloads/nccl/aws_libfabric.h"
#include "workloads/nccl/collnet_blocks_schedule.h"
#include "workloads/nccl/collnet_chain_schedule.h"
#include "workloads/nccl/collnet_direct_schedule.h"
#include "workloads/nccl/nccl_chunking.h"
#include "workloads/nccl/nccl_graph.h"
#include "workloads/nccl/nccl_versions.h"
#include "workloads/nccl/nvls_tuning.h"
#include "workloads/nccl/p2p_schedule.h"
#include "workloads/nccl/rccl.h"

namespace railyard {

namespace {

// The first version whose plug-in interface supports gather and scatter in the network
// (ncclCollNet_v8_t).
constexpr uint32_t kFirstCollnetBlocksVersion = 22000;
constexpr uint32_t kCollnetHeadsMax = 8;  // NCCL_MAX_DIRECT_ARITY + 1

// A communicator of one rank copies locally (ncclLaunchOneRank): no channels, no steps.
class LocalSchedule final : public CollectiveSchedule {
 public:
  uint32_t rank_count() const override { return 1; }
  uint32_t channel_count() const override { return 0; }
  const MessageRule& message_rule() const override { return message_rule_; }
  uint32_t BatchCount(RankIndex, uint32_t) const override { return 0; }
  uint32_t LaneCount(RankIndex, uint32_t, uint32_t) const override { return 0; }
  LanePeers PeersOf(const LaneId&) const override { return {}; }
  uint64_t StepCount(const LaneId&) const override { return 0; }
  Step StepAt(const LaneId&, uint64_t) const override { return {}; }

 private:
  MessageRule message_rule_;
};

// collTaskAppend (src/enqueue.cc) turns what is only copied into bytes.
struct Elements {
  uint64_t count = 0;
  uint32_t bytes = 1;  // of each
};
Elements ElementsOf(const JobCollective& collective) {
  const uint32_t bytes = DatatypeBytes(collective.datatype);
  if (collective.kind == CollectiveKind::kAllGather ||
      collective.kind == CollectiveKind::kBroadcast) {
    return {collective.count * bytes, 1};
  }
  return {collective.count, bytes};
}

// True for algorithms that only the scenario's demand selects: NCCL has no such algorithm, or would
// not take it here. Each has one protocol.
bool NeedsNoTuner(Algorithm algorithm) {
  return algorithm == Algorithm::kPat || algorithm == Algorithm::kDirect ||
         algorithm == Algorithm::kHalvingDoubling;
}

uint64_t RoundDown(uint64_t bytes, uint64_t grain_bytes) {
  return bytes / grain_bytes * grain_bytes;
}

// ncclNvlsSupported (src/include/device.h), for sums.
bool NvlsReduces(Datatype datatype) {
  switch (datatype) {
    case Datatype::kInt8:
    case Datatype::kUint8:
    case Datatype::kFloat8E4M3:
    case Datatype::kFloat8E5M2:
      return false;
    default:
      return true;
  }
}

// Returns the choice that the tuner expects to be the fastest of those that `allows` accepts;
// nullopt if none is available.
template <typename Allows>
std::optional<ReplayChoice> Fastest(const NcclTuner& tuner, const TunedCall& call, Allows allows) {
  std::optional<ReplayChoice> best;
  double best_us = 0;
  for (const ReplayChoice& choice : ReplayableChoices()) {
    if (!allows(choice)) continue;
    const std::optional<double> time_us = tuner.TimeUs(call, choice.algorithm, choice.protocol);
    if (!time_us || (best && *time_us >= best_us)) continue;
    best = choice;
    best_us = *time_us;
  }
  return best;
}

bool IsOf(const ExplicitAlgorithm& algorithm, const JobCollective& collective,
          const CommunicatorLayout& layout) {
  const bool has_root =
      algorithm.kind == CollectiveKind::kBroadcast || algorithm.kind == CollectiveKind::kReduce;
  return algorithm.kind == collective.kind && algorithm.rank_count == layout.ranks.size() &&
         (!has_root || algorithm.root == collective.root);
}

// Ranks by node, in the order of their GPUs; nullptr unless every node has as many.
std::shared_ptr<const HeadTable> MakeHeadTable(const CommunicatorLayout& layout) {
  std::vector<std::vector<RankIndex>> nodes = RanksByNode(layout);
  const auto is_equal = [&](const auto& ranks) { return ranks.size() == nodes.front().size(); };
  if (!std::all_of(nodes.begin(), nodes.end(), is_equal)) return nullptr;
  return std::make_shared<HeadTable>(std::move(nodes));
}

// Without NVLink where P2P_LEVEL leaves it unused.
CommunicatorLayout AsUsed(CommunicatorLayout layout, const NcclSettings& settings) {
  if (P2pLevelOf(layout, settings) >= PathType::kNvl ||
      layout.ranks.size() <= layout.node_count()) {
    return layout;
  }
  layout.nvlink = false;
  layout.nvswitch = false;
  layout.mesh_lanes.clear();
  return layout;
}

// Returns the speed on the slowest node; 0 if no node has two GPUs with places in PCIe's tree.
double SlowestPcieRingGbPerS(const CommunicatorLayout& layout, const NcclSettings& settings) {
  double slowest = 0;
  for (const std::vector<RankIndex>& ranks : RanksByNode(layout)) {
    const auto has_place = [&](RankIndex rank) { return layout.ranks[rank].pcie.host_bridge >= 0; };
    if (ranks.size() < 2 || !std::all_of(ranks.begin(), ranks.end(), has_place)) continue;
    const double gb_per_s = PcieRingGbPerS(layout, settings, ranks);
    slowest = slowest == 0 ? gb_per_s : std::min(slowest, gb_per_s);
  }
  return slowest;
}

}  // namespace

NcclPlanner::NcclPlanner(CommunicatorLayout layout, NcclSettings settings)
    : settings_(layout.library == CollectiveLibrary::kRccl
                    ? WithRcclDefaults(std::move(settings), layout.ranks.size())
                    : std::move(settings)),
      layout_(AsUsed(std::move(layout), settings_)),
      channels_(BuildChannels(layout_, settings_)),
      rings_(std::make_shared<RingTable>(channels_.rings)),
      p2p_order_(layout_, settings_.version, channels_.p2p_channel_count),
      gpu_taken_(size_t{layout_.node_count()} * layout_.gpus_per_server) {
  for (const RankPlace& place : layout_.ranks) {
    gpu_taken_[size_t{place.node} * layout_.gpus_per_server + place.local_index] = true;
  }
  const auto rank_count = static_cast<uint32_t>(layout_.ranks.size());
  if (rank_count < 2) return;
  heads_ = MakeHeadTable(layout_);
  const auto channel_count = static_cast<uint32_t>(channels_.rings.size());
  trees_ = std::make_shared<TreeTable>(
      layout_.tree_parents.empty()
          ? BuildTrees(layout_, channels_.graph_channel_count, channel_count, channels_.mesh_rings)
          : StatedTrees(layout_, channel_count));
  TunerPlatform platform =
      SearchedPlatform(layout_, static_cast<uint32_t>(channels_.mesh_rings.size()),
                       layout_.nvlink ? 0 : SlowestPcieRingGbPerS(layout_, settings_));
  if (HasCollnet()) {
    platform.collnet = platform.tree;  // assumed: the search is for the same paths to the same NICs
    chains_ = std::make_shared<TreeTable>(
        BuildChains(layout_, channels_.graph_channel_count, channel_count, channels_.mesh_rings));
  }
  if (settings_.net == NetPlugin::kAwsLibfabric) {
    platform.net_latency_us =
        settings_.ofi_net_latency_us.value_or(AwsLibfabricNetLatencyUs(layout_.generation));
    // The plug-in sets NCCL_PROTO for all communicators of its process.
    if (!settings_.protocols.IsStated()) {
      settings_.protocols.AllowOnly(AwsLibfabricProtocols(layout_.generation));
    }
  }
  tuner_.emplace(platform, TunedCommunicator{rank_count, layout_.node_count(), channel_count},
                 settings_.version, settings_.pat_enable);
}

std::shared_ptr<const ExplicitAlgorithm> NcclPlanner::OwnAlgorithmOf(
    const JobCollective& collective) const {
  for (const auto& algorithm : settings_.own_algorithms) {
    if (IsOf(*algorithm, collective, layout_)) return algorithm;
  }
  return nullptr;
}

std::optional<ReplayChoice> NcclPlanner::Choose(const JobCollective& collective,
                                                const ReplayChoice& stated) const {
  SIM_CHECK(!collective.is_p2p(), "NCCL chooses no algorithm for Send and Recv");
  if (const auto own = OwnAlgorithmOf(collective)) {
    return ReplayChoice{Algorithm::kExplicit, own->protocol};
  }
  if (!tuner_) return ReplayChoice{Algorithm::kRing, Protocol::kSimple};
  const TunedCall call = {collective.kind, collective.bytes, collective.datatype,
                          NvlsReduces(collective.datatype)};
  const auto is_possible = [&](const ReplayChoice& choice) {
    return (stated.algorithm == Algorithm::kUnstated || stated.algorithm == choice.algorithm) &&
           (stated.protocol == Protocol::kUnstated || stated.protocol == choice.protocol) &&
           Suits(collective.kind, choice.algorithm);
  };
  for (const ReplayChoice& choice : ReplayableChoices()) {
    if (!is_possible(choice)) continue;
    // Whatever the tuner thinks of it here.
    if (choice == stated) return choice;
    if (choice.algorithm == stated.algorithm && NeedsNoTuner(choice.algorithm) &&
        settings_.protocols.Allows(collective.kind, choice.protocol)) {
      return choice;
    }
  }
  std::optional<ReplayChoice> best = Fastest(*tuner_, call, [&](const ReplayChoice& choice) {
    return is_possible(choice) && Allows(collective.kind, stated, choice);
  });
  const bool is_open =
      stated.protocol == Protocol::kUnstated && !settings_.protocols.IsStatedFor(collective.kind);
  if (best && is_open) {
    best->protocol = tuner_->ProtocolBySize(call).value_or(best->protocol);
  }
  if (!best && stated == ReplayChoice{}) return RingInstead(call);
  return best;
}

bool NcclPlanner::Allows(CollectiveKind kind, const ReplayChoice& stated,
                         const ReplayChoice& choice) const {
  return (stated.algorithm == choice.algorithm ||
          settings_.algorithms.Allows(kind, choice.algorithm)) &&
         settings_.protocols.Allows(kind, choice.protocol) && AllowsLl128(kind, choice.protocol);
}

bool NcclPlanner::AllowsLl128(CollectiveKind kind, Protocol protocol) const {
  return protocol != Protocol::kLl128 || layout_.node_count() == 1 ||
         settings_.AllowsLl128BetweenServers(kind);
}

std::optional<ReplayChoice> NcclPlanner::RingInstead(const TunedCall& call) const {
  if (settings_.version >= kFirstStrictChoiceVersion) return std::nullopt;
  const bool obeys_proto = settings_.version >= kFirstProtoForRingsVersion;
  return Fastest(*tuner_, call, [&](const ReplayChoice& choice) {
    return choice.algorithm == Algorithm::kRing &&
           (!obeys_proto || settings_.protocols.Allows(call.kind, choice.protocol)) &&
           AllowsLl128(call.kind, choice.protocol);
  });
}

bool NcclPlanner::Suits(CollectiveKind kind, Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::kTree:
      return kind == CollectiveKind::kAllReduce;
    case Algorithm::kCollnetDirect:
      // "if not on an NVSwitch system" it is disabled (ncclTopoTuneModel, src/graph/tuning.cc).
      return HasCollnet() && layout_.nvswitch && heads_->heads() <= kCollnetHeadsMax &&
             (kind == CollectiveKind::kAllReduce ||
              (settings_.version >= kFirstCollnetBlocksVersion && layout_.gpus_per_nic == 1 &&
               (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter)));
    case Algorithm::kCollnetChain:
      return HasCollnet() && heads_->heads() <= kCollnetHeadsMax &&
             kind == CollectiveKind::kAllReduce;
    case Algorithm::kNvls:
      if (!HasNvls()) return false;
      if (layout_.node_count() > 1) return HasCollnet() && kind == CollectiveKind::kAllReduce;
      // Every rank of AllGather and ReduceScatter is the head of its block.
      return kind == CollectiveKind::kAllReduce ||
             (heads_->heads() <= kNvlsHeadsMax &&
              (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter));
    case Algorithm::kNvlsTree:
      return HasNvls() && layout_.node_count() > 1 && kind == CollectiveKind::kAllReduce;
    case Algorithm::kPat:
      return settings_.version >= kFirstPatVersion && settings_.pat_enable != 0 &&
             (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter);
    case Algorithm::kDirect:
      return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
             kind == CollectiveKind::kReduceScatter;
    case Algorithm::kHalvingDoubling:
      return kind == CollectiveKind::kAllReduce;
    default:
      return true;
  }
}

bool NcclPlanner::HasNvls() const {
  const uint32_t first_version =
      layout_.node_count() > 1 ? kFirstNvlsOverServersVersion : kFirstNvlsVersion;
  return settings_.nvls_enable && settings_.version >= first_version && layout_.nvswitch &&
         layout_.generation >= GpuGeneration::kHopper && heads_ != nullptr && heads_->heads() >= 2;
}

// Two nodes are enough (NCCL_COLLNET_NODE_THRESHOLD); the heads of all nodes are the same.
bool NcclPlanner::HasCollnet() const {
  return settings_.collnet_enable && layout_.node_count() > 1 && heads_ != nullptr;
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::Plan(const JobCollective& collective,
                                                            const ReplayChoice& choice) const {
  SIM_CHECK(!collective.is_p2p(), "a point-to-point collective is planned by rank");
  if (layout_.ranks.size() == 1) return std::make_shared<LocalSchedule>();
  switch (choice.algorithm) {
    case Algorithm::kRing:
      return PlanRing(collective, choice.protocol);
    case Algorithm::kTree:
      return PlanTree(collective, choice.protocol);
    case Algorithm::kCollnetDirect:
      return PlanCollnetDirect(collective);
    case Algorithm::kCollnetChain:
      return PlanCollnetChain(collective);
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
      return PlanNvls(collective, choice);
    case Algorithm::kPat:
      return PlanPat(collective);
    case Algorithm::kDirect:
      return PlanDirect(collective);
    case Algorithm::kHalvingDoubling:
      return PlanHalvingDoubling(collective);
    case Algorithm::kExplicit:
      return PlanExplicit(collective);
    default:
      SIM_CHECK(false, "no schedule for " + ReplayName(choice));
  }
  return nullptr;
}

std::vector<ChannelShare> NcclPlanner::SharesOf(const JobCollective& collective,
                                                const ReplayChoice& choice,
                                                uint32_t channel_count) const {
  const Elements elements = ElementsOf(collective);
  return SplitOverChannels({.version = settings_.version,
                            .kind = collective.kind,
                            .count = elements.count,
                            .element_bytes = elements.bytes,
                            .rank_count = static_cast<uint32_t>(layout_.ranks.size()),
                            .channel_count = channel_count,
                            .algorithm = choice.algorithm,
                            .protocol = choice.protocol});
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanRing(const JobCollective& collective,
                                                                Protocol protocol) const {
  const ReplayChoice choice = {Algorithm::kRing, protocol};
  const Elements elements = ElementsOf(collective);
  const StepsRule steps = StepsRuleOf(collective.kind, choice);
  const SlotRule slot = SlotRuleOf(protocol, settings_);
  RingParameters parameters;
  parameters.kind = collective.kind;
  parameters.block_bytes = elements.count * elements.bytes;
  parameters.root = collective.root;
  parameters.chunk_bytes = RoundDown(steps.slots_per_chunk * slot.payload_bytes, slot.grain_bytes);
  parameters.shares = SharesOf(collective, choice, rings_->channel_count());
  parameters.message_rule = MessageRuleOf(steps, slot, elements.bytes);
  return std::make_shared<RingSchedule>(rings_, std::move(parameters));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanTree(const JobCollective& collective,
                                                                Protocol protocol) const {
  const ReplayChoice choice = {Algorithm::kTree, protocol};
  const SlotRule slot = SlotRuleOf(protocol, settings_);
  const double nodes = layout_.node_count();
  const TreeRule rule = {.protocol = protocol,
                         .ranks_per_node = static_cast<double>(layout_.ranks.size()) / nodes,
                         .nodes = nodes,
                         .version = settings_.version};
  TreeParameters parameters;
  parameters.shares = SharesOf(collective, choice, rings_->channel_count());
  for (const ChannelShare& share : parameters.shares) {
    const uint64_t chunk_bytes = TreeChunkBytes(share.bytes, slot.payload_bytes, rule);
    parameters.chunk_bytes.push_back(RoundDown(chunk_bytes, slot.grain_bytes));
  }
  parameters.message_rule =
      MessageRuleOf(StepsRuleOf(collective.kind, choice), slot, ElementsOf(collective).bytes);
  return std::make_shared<TreeSchedule>(trees_, std::move(parameters));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanNvls(const JobCollective& collective,
                                                                const ReplayChoice& choice) const {
  const Elements elements = ElementsOf(collective);
  NvlsParameters parameters;
  parameters.kind = collective.kind;
  parameters.block_bytes = elements.count * elements.bytes;
  const NvlsTuning tuning = NvlsTuningOf(layout_, heads_->heads(), settings_);
  parameters.channel_count = tuning.channel_count;
  const uint64_t heads = std::min(heads_->heads(), kNvlsHeadsMax);
  if (choice.algorithm == Algorithm::kNvls && layout_.node_count() > 1) {
    parameters.network_sum = true;
    // If NCCL expects less than 150 GB/s, chunks are at most 32 KiB.
    const double gb_per_s =
        tuner_->ModelOf(collective.kind, choice.algorithm, choice.protocol).gb_per_s;
    const uint64_t chunk_bytes_max = gb_per_s < 150 ? 32u << 10 : tuning.chunk_bytes;
    parameters.chunk_bytes =
        NvlsChunkBytes(std::min(tuning.chunk_bytes, chunk_bytes_max), parameters.block_bytes,
                       heads * parameters.channel_count);
  } else if (choice.algorithm == Algorithm::kNvls) {
    parameters.shares = SharesOf(collective, choice, parameters.channel_count);
    uint64_t share_bytes = 0;
    for (const ChannelShare& share : parameters.shares) {
      share_bytes = std::max(share_bytes, share.bytes);
    }
    parameters.chunk_bytes = NvlsChunkBytes(tuning.chunk_bytes, share_bytes, heads);
    parameters.grain_bytes = 16u << 10;  // of lastChunkSize, src/device/all_reduce.h
  } else {
    parameters.chunk_bytes =
        NvlsTreeChunkBytes(std::min(tuning.tree_chunk_bytes, tuning.tree_chunk_bytes_max),
                           parameters.block_bytes, heads * parameters.channel_count);
  }
  parameters.chunk_bytes = std::min(parameters.chunk_bytes, settings_.buffsize_bytes / kSlots);
  return std::make_shared<NvlsSchedule>(heads_, std::move(parameters));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanCollnetDirect(
    const JobCollective& collective) const {
  const ReplayChoice choice = {Algorithm::kCollnetDirect, Protocol::kSimple};
  const Elements elements = ElementsOf(collective);
  const SlotRule slot = SlotRuleOf(choice.protocol, settings_);
  const uint64_t heads = heads_->heads();
  const uint32_t channel_count = rings_->channel_count();
  const uint64_t bytes = elements.count * elements.bytes;  // of the vector, or of a block
  const bool has_blocks = collective.kind != CollectiveKind::kAllReduce;
  const uint64_t depth = heads == 1 ? 1 : 2;
  const uint64_t chunk_bytes = CollnetChunkBytes(
      slot.payload_bytes, {.bytes = has_blocks ? rings_->rank_count() * bytes : bytes,
                           .chunks = channel_count * heads,
                           .depth = depth,
                           .fewest = depth * 8});
  const MessageRule rule =
      MessageRuleOf(StepsRuleOf(collective.kind, choice), slot, elements.bytes);
  if (has_blocks) {
    return std::make_shared<CollnetBlocksSchedule>(
        heads_, CollnetBlocksParameters{.kind = collective.kind,
                                        .block_bytes = bytes,
                                        .chunk_bytes = RoundDown(chunk_bytes, elements.bytes),
                                        .channel_count = channel_count,
                                        .message_rule = rule});
  }
  CollnetDirectParameters parameters;
  parameters.bytes = bytes;
  parameters.channel_count = channel_count;
  parameters.chunk_bytes = chunk_bytes;
  parameters.message_rule = rule;
  return std::make_shared<CollnetDirectSchedule>(heads_, parameters);
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanCollnetChain(
    const JobCollective& collective) const {
  const ReplayChoice choice = {Algorithm::kCollnetChain, Protocol::kSimple};
  const Elements elements = ElementsOf(collective);
  const SlotRule slot = SlotRuleOf(choice.protocol, settings_);
  CollnetChainParameters parameters;
  parameters.bytes = elements.count * elements.bytes;
  constexpr uint64_t kChunkBytesMax = 256u << 10;
  const uint64_t depth = heads_->heads();
  parameters.chunk_bytes = CollnetChunkBytes(
      std::min(kChunkBytesMax, slot.payload_bytes),
      {.bytes = parameters.bytes, .chunks = chains_->size(), .depth = depth, .fewest = depth});
  parameters.message_rule =
      MessageRuleOf(StepsRuleOf(collective.kind, choice), slot, elements.bytes);
  return std::make_shared<CollnetChainSchedule>(chains_, parameters);
}

NcclPlanner::ExchangePlan NcclPlanner::PlanExchange(const JobCollective& collective,
                                                    Algorithm algorithm) const {
  const ReplayChoice choice = {algorithm, Protocol::kSimple};
  const Elements elements = ElementsOf(collective);
  const SlotRule slot = SlotRuleOf(choice.protocol, settings_);
  return {
      .block_bytes = elements.count * elements.bytes,
      .shares = SharesOf(collective, choice, rings_->channel_count()),
      .slot_bytes = RoundDown(slot.payload_bytes, slot.grain_bytes),
      .message_rule = MessageRuleOf(StepsRuleOf(collective.kind, choice), slot, elements.bytes)};
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanPat(
    const JobCollective& collective) const {
  ExchangePlan plan = PlanExchange(collective, Algorithm::kPat);
  PatParameters parameters;
  parameters.kind = collective.kind;
  parameters.rank_count = rings_->rank_count();
  parameters.block_bytes = plan.block_bytes;
  for (const ChannelShare& share : plan.shares) {
    parameters.chunk_bytes.push_back(
        PatChunkBytes(plan.slot_bytes, share.bytes * parameters.rank_count, collective.kind));
  }
  parameters.shares = std::move(plan.shares);
  parameters.message_rule = plan.message_rule;
  return std::make_shared<PatSchedule>(std::move(parameters));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanDirect(
    const JobCollective& collective) const {
  ExchangePlan plan = PlanExchange(collective, Algorithm::kDirect);
  return std::make_shared<DirectSchedule>(DirectParameters{.kind = collective.kind,
                                                           .rank_count = rings_->rank_count(),
                                                           .block_bytes = plan.block_bytes,
                                                           .shares = std::move(plan.shares),
                                                           .chunk_bytes = plan.slot_bytes,
                                                           .message_rule = plan.message_rule});
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanHalvingDoubling(
    const JobCollective& collective) const {
  ExchangePlan plan = PlanExchange(collective, Algorithm::kHalvingDoubling);
  return std::make_shared<HalvingDoublingSchedule>(
      HalvingDoublingParameters{.rank_count = rings_->rank_count(),
                                .shares = std::move(plan.shares),
                                .chunk_bytes = plan.slot_bytes,
                                .message_rule = plan.message_rule});
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanExplicit(
    const JobCollective& collective) const {
  const std::shared_ptr<const ExplicitAlgorithm> algorithm = OwnAlgorithmOf(collective);
  const SlotRule slot = SlotRuleOf(algorithm->protocol, settings_);
  const Elements elements = ElementsOf(collective);
  const StepsRule steps;
  return std::make_shared<ExplicitSchedule>(algorithm, elements.count * elements.bytes,
                                            RoundDown(slot.payload_bytes, slot.grain_bytes),
                                            MessageRuleOf(steps, slot, elements.bytes));
}

std::shared_ptr<const CollectiveSchedule> NcclPlanner::PlanP2p(RankIndex rank, const P2pCall* calls,
                                                               uint32_t call_count,
                                                               bool in_place) const {
  return std::make_shared<P2pSchedule>(layout_, settings_, channels_, p2p_order_, rank, calls,
                                       call_count, in_place);
}

// Send/Recv, ncclTopoGetNetDev (src/graph/search.cc): by the GPU of the sender's server with the
// destination's local index, if the communicator has a rank there, so that the fabric is crossed on
// the destination's rail. Trees: by the NIC of the GPU that is joined to the other server.
ConnectionRoute NcclPlanner::RouteOf(uint32_t channel, RankIndex from, RankIndex to,
                                     ConnectionUse use) const {
  const RankPlace& source = layout_.ranks[from];
  const RankPlace& target = layout_.ranks[to];
  if (use == ConnectionUse::kNetworkSum || use == ConnectionUse::kRemoteWrite)
    return {.network = true, .sending_local_index = source.local_index};
  if (source.node == target.node) {
    return {.network = false,
            .sending_local_index = source.local_index,
            .over_host_memory = TransportBetween(from, to) == LocalTransport::kSharedMemory};
  }
  switch (use) {
    case ConnectionUse::kRing:
      return {.network = true, .sending_local_index = channels_.sending_nic[channel][from]};
    case ConnectionUse::kTree:
    case ConnectionUse::kExchange:
      return {.network = true, .sending_local_index = source.local_index};
    case ConnectionUse::kSwitchOperand:
    case ConnectionUse::kSwitchResult:
      SIM_CHECK(false, "NVSwitches join the GPUs of one server");
      break;
    case ConnectionUse::kNetworkSum:
    case ConnectionUse::kRemoteWrite:
    case ConnectionUse::kPointToPoint:
      break;
  }
  const bool relay = settings_.UsesPxn() && layout_.nvlink &&
                     gpu_taken_[size_t{source.node} * layout_.gpus_per_server + target.local_index];
  return {.network = true, .sending_local_index = relay ? target.local_index : source.local_index};
}

}  // namespace railyard
