// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/rccl.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "workloads/collectives/collective_sizes.h"

namespace railyard {
namespace {

constexpr uint32_t kGpus = 8;
using Order = std::array<uint32_t, kGpus>;

// ringBase of rome_model_79, which has no NICs, without the seven that run backwards.
constexpr std::array<Order, 7> kOneServer = {{{0, 1, 2, 3, 4, 5, 6, 7},
                                              {0, 1, 2, 3, 4, 5, 7, 6},
                                              {0, 2, 4, 1, 3, 6, 5, 7},
                                              {0, 2, 4, 6, 1, 7, 3, 5},
                                              {0, 3, 1, 5, 2, 7, 4, 6},
                                              {0, 3, 5, 1, 6, 2, 7, 4},
                                              {0, 4, 1, 7, 3, 6, 2, 5}}};
// ringBase of rome_model_81, which has eight NICs; all rings are there twice.
constexpr std::array<Order, 8> kBetweenServers = {{{0, 1, 2, 3, 4, 5, 6, 7},
                                                   {1, 0, 2, 4, 3, 5, 7, 6},
                                                   {2, 5, 0, 3, 7, 1, 6, 4},
                                                   {3, 6, 1, 5, 2, 7, 4, 0},
                                                   {4, 7, 0, 6, 5, 1, 3, 2},
                                                   {5, 4, 6, 3, 0, 7, 2, 1},
                                                   {6, 2, 0, 4, 1, 7, 5, 3},
                                                   {7, 3, 1, 4, 2, 6, 0, 5}}};

constexpr size_t kPxnRanksMin = 64;
constexpr uint64_t kWideChunkBytes = 512u << 10;

// LL and Simple of tuning_model_5 and of baseLat, in microseconds.
struct RcclByProtocol {
  double ll = 0;
  double simple = 0;
  double Of(Protocol protocol) const { return protocol == Protocol::kLl ? ll : simple; }
};
constexpr RcclByProtocol kBaseUs = {12.0, 17.0};
constexpr RcclByProtocol kTreeLocalUs = {0.9, 2.3};
constexpr RcclByProtocol kRingLocalUs = {0.8, 2.1};
constexpr RcclByProtocol kTreeNetworkUs = {10.5, 25.0};
constexpr RcclByProtocol kRingNetworkUs = {9.5, 320.0};
// bwRatio.
constexpr RcclByProtocol kRingRatio = {0.08, 1.0};
constexpr RcclByProtocol kTreeRatioTwoNodes = {0.06, 0.11};
constexpr RcclByProtocol kTreeRatioMoreNodes = {0.06, 0.59};
constexpr double kLlChainFactor = 1.65;  // of Broadcast and Reduce in one server

// treeCorrectionFactor and ringCorrectionFactor by log2(bytes / 64); the last holds beyond.
constexpr size_t kCorrections = 27;
using Corrections = std::array<double, kCorrections>;
constexpr Corrections kTreeLl = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0,
                                 1.0, 1.0, 0.6, 1.0, 0.9, 1.0, 1.0, 0.1, 0.1,
                                 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
constexpr Corrections kTreeSimple = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                     0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.7, 1.0, 1.0,
                                     1.0, 1.0, 1.0, 0.7, 0.7, 0.5, 0.6, 0.6, 0.6};
constexpr Corrections kRingLl = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                 0.1, 0.1, 1.0, 0.2, 1.0, 0.4, 0.4, 0.1, 0.2,
                                 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1};
constexpr Corrections kRingSimple = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                     0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
                                     0.1, 0.1, 0.1, 0.1, 1.0, 0.8, 1.0, 1.0, 1.0};

double CorrectionOf(const Corrections& corrections, uint64_t bytes) {
  const uint64_t lines = bytes >> 6;
  const size_t index = lines == 0 ? 0 : static_cast<size_t>(std::bit_width(lines) - 1);
  return corrections[std::min(index, kCorrections - 1)];
}

bool IsChainKind(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

// Holds what the time of a call with one algorithm depends on.
struct Costs {
  double latency_us = 0;
  double gb_per_s = 0;
};

Costs RingCosts(const TunedCall& call, const TunedCommunicator& communicator,
                const TunerPlatform& platform, Protocol protocol) {
  const double ranks = communicator.rank_count;
  const double nodes = communicator.node_count;
  const bool one_node = communicator.node_count == 1;
  const bool is_chain = IsChainKind(call.kind);
  const double passes = call.kind == CollectiveKind::kAllReduce ? 2 : 1;
  const double steps = is_chain ? ranks : passes * (ranks - 1);
  double bus = platform.ring.channel_count * platform.ring.intra_gb_per_s * kRingRatio.Of(protocol);
  if (is_chain && one_node && protocol == Protocol::kLl) bus *= kLlChainFactor;
  if (!one_node) {
    bus *= CorrectionOf(protocol == Protocol::kLl ? kRingLl : kRingSimple, call.bytes);
  }
  Costs costs = {kBaseUs.Of(protocol), bus * ranks / steps};
  if (is_chain) {
    // With Simple a tree's latency stands for a chunk's.
    const bool is_simple = protocol == Protocol::kSimple;
    const RcclByProtocol& hop = one_node ? (is_simple ? kTreeLocalUs : kRingLocalUs)
                                         : (is_simple ? kTreeNetworkUs : kRingNetworkUs);
    costs.latency_us += steps * hop.Of(protocol);
    return costs;
  }
  const double post_us = protocol == Protocol::kSimple ? 3 : 1;
  const double overhead_us = one_node ? 0 : NetOverheadUs(platform.cpu) * post_us;
  const double network_steps = one_node ? 0 : passes * (nodes - 1);
  const bool one_gpu = communicator.rank_count == communicator.node_count;
  const double network_us = (one_gpu ? kTreeNetworkUs : kRingNetworkUs).Of(protocol);
  costs.latency_us += (steps - network_steps) * std::max(kRingLocalUs.Of(protocol), overhead_us) +
                      network_steps * network_us;
  return costs;
}

Costs TreeCosts(const TunedCall& call, const TunedCommunicator& communicator,
                const TunerPlatform& platform, Protocol protocol) {
  const RcclByProtocol& ratio =
      communicator.node_count <= 2 ? kTreeRatioTwoNodes : kTreeRatioMoreNodes;
  const double bus = platform.tree.channel_count * platform.tree.intra_gb_per_s *
                     ratio.Of(protocol) *
                     CorrectionOf(protocol == Protocol::kLl ? kTreeLl : kTreeSimple, call.bytes);
  const double levels = std::bit_width(communicator.node_count) - 1;
  const uint32_t ranks_of_node = communicator.rank_count / communicator.node_count;
  const double others = ranks_of_node - 1.0;
  return {kBaseUs.Of(protocol) +
              2 * (others * kTreeLocalUs.Of(protocol) + levels * kTreeNetworkUs.Of(protocol)),
          bus * 0.5};
}

}  // namespace

bool HasRcclRings(const CommunicatorLayout& layout) {
  if (layout.library != CollectiveLibrary::kRccl || layout.mesh_lanes.size() != kGpus) return false;
  for (size_t a = 0; a < kGpus; ++a) {
    for (size_t b = 0; b < kGpus; ++b) {
      if (a != b && layout.mesh_lanes[a][b] == 0) return false;
    }
  }
  const auto nodes = RanksByNode(layout);
  return std::ranges::all_of(nodes, [](const auto& ranks) { return ranks.size() == kGpus; });
}

std::vector<std::vector<uint32_t>> RcclRings(uint32_t node_count) {
  std::vector<std::vector<uint32_t>> rings;
  if (node_count == 1) {
    for (const Order& order : kOneServer) rings.emplace_back(order.begin(), order.end());
    for (const Order& order : kOneServer) rings.emplace_back(order.rbegin(), order.rend());
    return rings;
  }
  for (int copy = 0; copy < 2; ++copy) {
    for (const Order& order : kBetweenServers) rings.emplace_back(order.begin(), order.end());
  }
  return rings;
}

NcclSettings WithRcclDefaults(NcclSettings settings, size_t rank_count) {
  const NcclSettings nccl;
  if (rank_count < kPxnRanksMin) {
    settings.pxn_disable = true;
  } else if (settings.p2p_net_chunksize_bytes == nccl.p2p_net_chunksize_bytes) {
    settings.p2p_net_chunksize_bytes = kWideChunkBytes;
  }
  return settings;
}

std::optional<double> RcclTimeUs(const TunedCall& call, const TunedCommunicator& communicator,
                                 const TunerPlatform& platform, Algorithm algorithm,
                                 Protocol protocol) {
  if (protocol != Protocol::kLl && protocol != Protocol::kSimple) return {};
  Costs costs;
  if (algorithm == Algorithm::kRing) {
    costs = RingCosts(call, communicator, platform, protocol);
  } else if (algorithm == Algorithm::kTree) {
    const bool is_off = communicator.node_count == 1 && protocol == Protocol::kSimple;
    if (call.kind != CollectiveKind::kAllReduce || is_off) return {};
    costs = TreeCosts(call, communicator, platform, protocol);
  } else {
    return {};
  }
  if (costs.gb_per_s <= 0) return {};
  return costs.latency_us + static_cast<double>(call.bytes) / (1000 * costs.gb_per_s);
}

std::optional<Protocol> RcclProtocol(const TunedCall& call, const TunedCommunicator& communicator) {
  const uint64_t block_bytes = call.bytes / communicator.rank_count;
  if (communicator.node_count == 1) {
    constexpr uint64_t kLlBytesMax = 352'128;
    const bool is_ll = call.kind == CollectiveKind::kReduceScatter && block_bytes <= kLlBytesMax;
    return is_ll ? std::optional(Protocol::kLl) : std::nullopt;
  }
  // llProtoRanges of tuning_model_5: more than 0 and at most so many bytes.
  uint64_t ll_bytes_max = 0;
  uint64_t bytes = block_bytes;
  switch (call.kind) {
    case CollectiveKind::kReduceScatter:
      ll_bytes_max = 655'360;
      break;
    case CollectiveKind::kAllGather:
      ll_bytes_max = 98'304;
      break;
    case CollectiveKind::kAllReduce:
      ll_bytes_max = 1'048'576;
      bytes = call.bytes;
      break;
    default:
      return {};
  }
  return bytes > 0 && bytes <= ll_bytes_max ? Protocol::kLl : Protocol::kSimple;
}

}  // namespace railyard
