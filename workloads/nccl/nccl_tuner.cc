// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_tuner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "simulator/diagnostics/check.h"
#include "workloads/collectives/collective_sizes.h"
#include "workloads/nccl/nccl_latencies.h"
#include "workloads/nccl/nccl_versions.h"
#include "workloads/nccl/rccl.h"

namespace railyard {

namespace {

// Protocols as the tables number them.
constexpr int kLl = 0;
constexpr int kLl128 = 1;
constexpr int kSimple = 2;
int IndexOf(Protocol protocol) {
  SIM_CHECK(protocol != Protocol::kUnstated, "a protocol to tune must be stated");
  return static_cast<int>(protocol) - static_cast<int>(Protocol::kLl);
}

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple
using ByNodes = std::array<double, 3>;     // 1, 2, more

// baseLatencies, hwLatencies, in microseconds; and the caps, in GB/s (src/graph/tuning.cc, NCCL
// 2.30). By generation where the table has a row for each.
constexpr ByProtocol kRingBaseUs = {6.6, 14.0, 8.4};
constexpr ByProtocol kTreeBaseUs = {6.8, 14.0, 8.4};
constexpr double kPatBaseUs = 8.0;
struct HardwareUs {
  ByProtocol tree;
  ByProtocol ring;
};
constexpr HardwareUs kNvlinkUs = {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}};
constexpr HardwareUs kPciUs = {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}};
constexpr HardwareUs kNetworkUs = {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}};
// Before 2.23 trees with Simple have no base latency. From 2.19 to 2.22 each of their steps takes
// 28 us (2.20.3, 2.21.5 and 2.22.3); 2.18.3 has the present values, except over PCIe.
constexpr double kTreeSimpleBefore223Us = 28.0;
constexpr double kTreeSimpleOverPcieBefore219Us = 6.0;
constexpr double kNvlsBefore221Us = 23.0;
// NVLSTree in 2.18.3: 19 us a node, without the plug-in's latency, and 0.7 of the bandwidth.
constexpr double kNvlsTreeNetworkBefore219Us = 19.0;
constexpr double kNvlsTreeShareBefore219 = 0.7;
constexpr double kNvlsTreeNetworkBefore228Us = 14.0;
constexpr double kPatNetworkUs = 14.0;
constexpr double kCollnetDirectLocalUs = 3.7;
constexpr double kCollnetDirectGpuUs = 0.4;
constexpr double kCollnetDirectNetworkUs = 31.0;
constexpr double kCollnetChainLocalUs = 2.8;
constexpr double kCollnetChainNetworkUs = 30.0;
constexpr uint32_t kCollnetGpusPerNodeMax = 8;  // NCCL_MAX_DIRECT_ARITY + 1

constexpr std::array<ByNodes, kGpuGenerationCount> kLlMax = {
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
constexpr std::array<ByNodes, kGpuGenerationCount> kRingLl128PerChannel = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
constexpr std::array<ByNodes, kGpuGenerationCount> kTreeLl128PerChannel = {
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr std::array<ByNodes, kGpuGenerationCount> kTreePerChannel = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};

// Blackwell's caps were twice Hopper's from its first version on, 2.25, to 2.27, and 2.28 had
// others for a ring's LL128.
constexpr ByNodes kBlackwellRingLl128Before228 = {2 * 36.7, 2 * 36.7, 2 * 36.7};
constexpr ByNodes kBlackwellRingLl128Of228 = {73.4, 34.6, 73.4};
constexpr ByNodes kBlackwellTreeLl128Before228 = {2 * 36.7, 2 * 36.7, 2 * 29.0};
constexpr ByNodes kBlackwellTreeBefore228 = {2 * 38.7, 2 * 41.4, 2 * 36.0};
constexpr std::array<ByNodes, kGpuGenerationCount> kNvlsTreePerChannel = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};
constexpr std::array<double, kGpuGenerationCount> kNvlsEfficiency = {0.0, 0.0, 0.85, 0.74};

// treeCorrectionFactor by log2(bytes / 64). NVLSTree has one more column than Tree.
constexpr int kTreeCorrections = 23;
constexpr int kNvlsTreeCorrections = 24;
constexpr std::array<std::array<double, kNvlsTreeCorrections>, 3> kTreeCorrection = {{
    {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
     0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
     0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9},
}};

int Log2(uint64_t value) { return value == 0 ? 0 : 63 - std::countl_zero(value); }

bool IsChain(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce;
}

}  // namespace

double NetOverheadUs(CommunicatorCpu cpu) { return cpu == CommunicatorCpu::kAmd ? 2.0 : 1.0; }

NcclTuner::NcclTuner(const TunerPlatform& platform, const TunedCommunicator& communicator,
                     uint32_t version, uint32_t pat_enable)
    : platform_(platform), communicator_(communicator), version_(version), pat_enable_(pat_enable) {
  SIM_CHECK(communicator.rank_count >= 2 && communicator.node_count >= 1,
            "the tuner wants two ranks or more");
  ranks_per_node_ = communicator.rank_count / communicator.node_count;
  nodes_index_ = static_cast<int>(std::min(communicator.node_count, 3u)) - 1;
}

double NcclTuner::StepCount(CollectiveKind kind) const {
  const double n = communicator_.rank_count;
  if (kind == CollectiveKind::kAllReduce) return 2 * (n - 1);
  return CountsOneBlock(kind) ? n - 1 : n;
}

bool NcclTuner::HasBlackwellRules() const {
  return platform_.generation == GpuGeneration::kBlackwell &&
         version_ >= kFirstBlackwellPlateauVersion;
}

double NcclTuner::NodeBandwidth(const SearchedGraph& graph) const {
  return communicator_.node_count <= 2 ? graph.intra_gb_per_s : graph.inter_gb_per_s;
}

double NcclTuner::LlCapGbPerS() const {
  GpuGeneration row = platform_.generation;
  if (communicator_.node_count > 1) {
    // The row is that of the CPU: AMD and mixed ones the second, others the first.
    const bool is_second =
        platform_.cpu == CommunicatorCpu::kAmd || platform_.cpu == CommunicatorCpu::kMixed;
    row = is_second ? GpuGeneration::kAmpere : GpuGeneration::kVolta;
  } else if (row == GpuGeneration::kHopper && version_ < 22100) {
    row = GpuGeneration::kAmpere;
  }
  return kLlMax[static_cast<size_t>(row)][static_cast<size_t>(nodes_index_)];
}

NcclTuner::ChannelCaps NcclTuner::ChannelCapsGbPerS() const {
  const auto row = static_cast<size_t>(platform_.generation);
  const auto nodes = static_cast<size_t>(nodes_index_);
  ChannelCaps caps = {kRingLl128PerChannel[row][nodes], kTreeLl128PerChannel[row][nodes],
                      kTreePerChannel[row][nodes]};
  if (platform_.generation != GpuGeneration::kBlackwell || version_ >= 22900) return caps;
  if (version_ >= 22800) {
    caps.ring_ll128 = kBlackwellRingLl128Of228[nodes];
    return caps;
  }
  return {kBlackwellRingLl128Before228[nodes], kBlackwellTreeLl128Before228[nodes],
          kBlackwellTreeBefore228[nodes]};
}

// Returns the share of its bandwidth that NCCL expects a ring to reach with LL.
double NcclTuner::RingLlShare(CollectiveKind kind) const {
  if (version_ >= 22100) return 0.5;
  const bool reduces = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduce;
  return communicator_.node_count > 1 || reduces ? 1.0 / 4 : 1.0 / 3;
}

double NcclTuner::RingGbPerS(CollectiveKind kind, int protocol) const {
  const double channels = platform_.ring.channel_count;
  const double bus = channels * NodeBandwidth(platform_.ring);
  double gb_per_s = bus;
  if (protocol == kLl) {
    gb_per_s = std::min(LlCapGbPerS(), RingLlShare(kind) * bus);
  } else if (protocol == kLl128) {
    const double share = ranks_per_node_ < 2 && version_ < 22300 ? 0.7 : 0.92;
    gb_per_s = std::min(share * bus, channels * ChannelCapsGbPerS().ring_ll128);
  }
  return gb_per_s * communicator_.rank_count / StepCount(kind);
}

double NcclTuner::TreeGbPerS(int protocol) const {
  const ChannelCaps caps = ChannelCapsGbPerS();
  const double channels = platform_.tree.channel_count;
  // From 2.32 on the slower of both limits trees on Blackwell, on two nodes too
  // (src/tuning/tree.cc).
  const double node_gb_per_s =
      HasBlackwellRules() ? std::min(platform_.tree.intra_gb_per_s, platform_.tree.inter_gb_per_s)
                          : NodeBandwidth(platform_.tree);
  double gb_per_s = std::min(0.92 * channels * node_gb_per_s, channels * caps.tree);
  if (protocol == kLl) {
    gb_per_s = std::min(gb_per_s / 3.8, LlCapGbPerS());
  } else if (protocol == kLl128) {
    gb_per_s = std::min(gb_per_s * (communicator_.node_count == 1 ? 7.0 / 9 : 120.0 / 128),
                        channels * caps.tree_ll128);
  }
  if (platform_.tree_meets_nic_on_one) gb_per_s *= 0.85;
  return gb_per_s * 0.5;
}

double NcclTuner::NvlsIntraGbPerS(CollectiveKind kind) const {
  const SearchedGraph& graph = platform_.nvls;
  if (version_ < 22800) return graph.intra_gb_per_s;
  const double channels = graph.channel_count;
  const double factor = kind == CollectiveKind::kAllReduce
                            ? 2.0
                            : static_cast<double>(ranks_per_node_ - 1) / ranks_per_node_;
  return graph.intra_gb_per_s * kNvlsEfficiency[static_cast<size_t>(platform_.generation)] *
         (channels - 1) / channels * factor;
}

double NcclTuner::NvlsGbPerS(CollectiveKind kind) const {
  const SearchedGraph& graph = platform_.nvls;
  const double bus = graph.channel_count * std::min(NvlsIntraGbPerS(kind), graph.inter_gb_per_s);
  if (kind != CollectiveKind::kAllReduce) return bus;
  return version_ < 22800 ? bus * 5 / 6 : bus * communicator_.rank_count / StepCount(kind);
}

double NcclTuner::NvlsTreeGbPerS() const {
  const SearchedGraph& graph = platform_.nvls;
  const bool two_nodes = communicator_.node_count <= 2;
  const double intra = NvlsIntraGbPerS(CollectiveKind::kAllReduce);
  if (version_ < 21900) {
    const double nodes = communicator_.node_count;
    return graph.channel_count * NodeBandwidth(graph) * kNvlsTreeShareBefore219 * nodes /
           (2 * (nodes - 1));
  }
  if (version_ < 22800) {
    const double inter = graph.inter_gb_per_s / (two_nodes ? 1 : 2);
    return graph.channel_count * std::min(intra, inter) * 5 / 6;
  }
  const double cap = kNvlsTreePerChannel[static_cast<size_t>(platform_.generation)]
                                        [static_cast<size_t>(nodes_index_)];
  const double inter = graph.inter_gb_per_s * (two_nodes ? 2 : 1);
  return graph.channel_count * std::min({intra, inter, cap}) * communicator_.rank_count /
         StepCount(CollectiveKind::kAllReduce);
}

double NcclTuner::PatGbPerS() const {
  return platform_.ring.channel_count * NodeBandwidth(platform_.ring) * 0.75;
}

// AllReduce gets half of the bus bandwidth, for all data goes up and comes down again;
// CollNetDirect expects a NIC for every GPU. AllGather and ReduceScatter get the bandwidth of a
// rail times the rails.
double NcclTuner::CollnetGbPerS(CollectiveKind kind, Algorithm algorithm) const {
  const SearchedGraph& graph = platform_.collnet;
  if (CountsOneBlock(kind)) {
    if (version_ >= 22700) {
      return ranks_per_node_ * std::min(graph.intra_gb_per_s, 0.9 * graph.inter_gb_per_s);
    }
    // NCCL measured with one and with eight GPUs; its interpolation divides integers.
    const uint32_t eights = (ranks_per_node_ - 1) / 7;
    return ranks_per_node_ * graph.intra_gb_per_s * (eights * 0.85 + (1.0 - eights) * 0.95);
  }
  double gb_per_s = graph.channel_count * graph.intra_gb_per_s;
  if (algorithm == Algorithm::kCollnetDirect) {
    const double gpus_per_nic = static_cast<double>(ranks_per_node_) / graph.channel_count;
    gb_per_s /= gpus_per_nic - (gpus_per_nic - 1) / 2;
    if (platform_.generation >= GpuGeneration::kHopper) gb_per_s *= 0.85;
  }
  return gb_per_s * 0.5;
}

// Returns how many of a ring's steps NCCL counts as steps between nodes. Up to 2.22 an AllReduce
// has two for each node, although a ring of two nodes has only two in all.
double NcclTuner::RingNetworkSteps(CollectiveKind kind) const {
  const double nodes = communicator_.node_count;
  if (kind != CollectiveKind::kAllReduce) return nodes - 1;
  return 2 * (version_ < 22300 ? nodes : nodes - 1);
}

double NcclTuner::LatencyUs(CollectiveKind kind, Algorithm algorithm, int protocol) const {
  const auto p = static_cast<size_t>(protocol);
  const double nodes = communicator_.node_count;
  const bool one_node = communicator_.node_count == 1;
  const HardwareUs& local = platform_.nvlink ? kNvlinkUs : kPciUs;
  const bool has_base = protocol != kSimple || version_ >= 22300;
  const auto tree_us = [&](const HardwareUs& hardware) {
    if (has_base) return hardware.tree[p];
    if (version_ >= 21900) return kTreeSimpleBefore223Us;
    return &hardware == &kPciUs ? kTreeSimpleOverPcieBefore219Us : hardware.tree[p];
  };
  const double levels = Log2(communicator_.node_count);
  // The latency that the plug-in reports is added; with Simple twice, for the flush.
  const double plugin_us = platform_.net_latency_us * (protocol == kSimple ? 2 : 1);
  const double nvls_plugin_us = version_ < 21900 ? 0 : plugin_us;
  switch (algorithm) {
    case Algorithm::kTree: {
      const double base_us = has_base ? kTreeBaseUs[p] : 0;
      const double network_us = tree_us(kNetworkUs) + plugin_us;
      return base_us + 2 * ((ranks_per_node_ - 1) * tree_us(local) + levels * network_us);
    }
    case Algorithm::kNvls:
      return (version_ < 22100 ? kNvlsBefore221Us : kNvlsUs) +
             (one_node ? 0 : kNvlsNetworkUs + nvls_plugin_us);
    case Algorithm::kCollnetDirect: {
      const double others = ranks_per_node_ - 1.0;
      return 2 * (std::min(1.0, others) * kCollnetDirectLocalUs + others * kCollnetDirectGpuUs) +
             kCollnetDirectNetworkUs + plugin_us;
    }
    case Algorithm::kCollnetChain:
      return 2 * (ranks_per_node_ - 1.0) * kCollnetChainLocalUs + kCollnetChainNetworkUs +
             plugin_us;
    case Algorithm::kNvlsTree:
      if (version_ < 21900) {
        return kNvlsBefore221Us + 2 * (nodes - 1) * kNvlsTreeNetworkBefore219Us;
      }
      return (version_ < 22100 ? kNvlsBefore221Us : kNvlsUs) +
             2 * levels *
                 ((version_ < 22800 ? kNvlsTreeNetworkBefore228Us : kNvlsTreeNetworkUs) +
                  plugin_us);
    case Algorithm::kPat:
      return kPatBaseUs + levels * (kPatNetworkUs + plugin_us) / 3.5 +
             2.8 * communicator_.rank_count;
    default:
      break;
  }
  if (IsChain(kind)) {
    const HardwareUs& hardware = one_node ? local : kNetworkUs;
    const double step_us = protocol == kSimple ? tree_us(hardware) : hardware.ring[p];
    return kRingBaseUs[p] + (platform_.same_rings ? step_us : communicator_.rank_count * step_us);
  }
  const double overhead_us =
      one_node ? 0 : NetOverheadUs(platform_.cpu) * (protocol == kSimple ? 3 : 1);
  const bool is_exposed = ranks_per_node_ == 1 && version_ >= 22300;
  const double network_us = (is_exposed ? tree_us(kNetworkUs) : kNetworkUs.ring[p]) + plugin_us;
  const double network_steps = one_node ? 0 : RingNetworkSteps(kind);
  return kRingBaseUs[p] + (StepCount(kind) - network_steps) * std::max(local.ring[p], overhead_us) +
         network_steps * network_us;
}

bool NcclTuner::IsAvailable(CollectiveKind kind, Algorithm algorithm, int protocol) const {
  const bool is_hopper_or_later = platform_.generation >= GpuGeneration::kHopper;
  if (protocol == kLl128 && !platform_.nvlink) return false;
  switch (algorithm) {
    case Algorithm::kRing:
      return platform_.ring.channel_count > 0;
    case Algorithm::kTree:
      return kind == CollectiveKind::kAllReduce && platform_.tree.channel_count > 0;
    case Algorithm::kNvls:
      return protocol == kSimple && !IsChain(kind) && is_hopper_or_later &&
             platform_.nvls.channel_count >= 2 &&
             (communicator_.node_count == 1
                  ? kind == CollectiveKind::kAllReduce || ranks_per_node_ <= 32
                  : kind == CollectiveKind::kAllReduce && platform_.collnet.channel_count > 0);
    case Algorithm::kCollnetDirect:
    case Algorithm::kCollnetChain:
      return protocol == kSimple &&
             (kind == CollectiveKind::kAllReduce || (algorithm == Algorithm::kCollnetDirect &&
                                                     CountsOneBlock(kind) && version_ >= 22000)) &&
             communicator_.node_count > 1 && platform_.collnet.channel_count > 0 &&
             ranks_per_node_ <= kCollnetGpusPerNodeMax;
    case Algorithm::kNvlsTree:
      return protocol == kSimple && kind == CollectiveKind::kAllReduce &&
             communicator_.node_count > 1 && is_hopper_or_later &&
             platform_.nvls.channel_count >= 2;
    case Algorithm::kPat:
      // ncclPatEnable (src/init.cc).
      return protocol == kSimple && CountsOneBlock(kind) &&
             (pat_enable_ == 2 ? ranks_per_node_ == 1 : pat_enable_ == 1) &&
             communicator_.node_count > 1 && version_ >= kFirstPatVersion &&
             platform_.ring.channel_count > 0;
    default:
      return false;
  }
}

NcclTuner::Model NcclTuner::ModelOf(CollectiveKind kind, Algorithm algorithm,
                                    Protocol protocol) const {
  SIM_CHECK(kind == CollectiveKind::kAllReduce || CountsOneBlock(kind) || IsChain(kind),
            "not a tuned collective: " + std::string(CollectiveKindName(kind)));
  const int p = IndexOf(protocol);
  if (!IsAvailable(kind, algorithm, p)) return {};
  const double latency_us = LatencyUs(kind, algorithm, p);
  switch (algorithm) {
    case Algorithm::kTree:
      return {latency_us, TreeGbPerS(p)};
    case Algorithm::kNvls:
      return {latency_us, NvlsGbPerS(kind)};
    case Algorithm::kNvlsTree:
      return {latency_us, NvlsTreeGbPerS()};
    case Algorithm::kPat:
      return {latency_us, PatGbPerS()};
    case Algorithm::kCollnetDirect:
    case Algorithm::kCollnetChain:
      return {latency_us, CollnetGbPerS(kind, algorithm)};
    default:
      return {latency_us, RingGbPerS(kind, p)};
  }
}

// From 2.30 on (2.30.7) the correction applies to NVLSTree on Blackwell with x86 CPUs; from 2.32 on
// with Grace too, if each of its four GPUs has a NIC of 800 Gb/s, below 64 MiB or on more than two
// nodes (src/tuning/nvls.cc).
int NcclTuner::CorrectionsOf(Algorithm algorithm, int index) const {
  if (algorithm == Algorithm::kTree) return kTreeCorrections;
  if (algorithm != Algorithm::kNvlsTree || platform_.generation != GpuGeneration::kBlackwell ||
      version_ < kFirstNvlsTreeTuningVersion) {
    return 0;
  }
  const bool has_grace_rule = HasBlackwellRules() && ranks_per_node_ == 4 &&
                              platform_.nvls.inter_gb_per_s >= 96 &&
                              (index < 20 || communicator_.node_count > 2);
  return platform_.cpu != CommunicatorCpu::kArm || has_grace_rule ? kNvlsTreeCorrections : 0;
}

// The factor of a ring's latency with Simple, its "plateau effect" (ncclTopoGetAlgoTime; from 2.32
// on ncclTuningRingModelSim, src/tuning/ring.cc, which has one within an NVLink domain of Blackwell
// too, smaller with few steps and with much for each rank and channel).
double NcclTuner::RingPlateau(CollectiveKind kind, uint64_t bytes) const {
  const uint64_t parts = uint64_t{communicator_.channel_count} * communicator_.rank_count;
  const uint64_t part_bytes = bytes / parts;
  if (part_bytes < 64) return 1;
  const bool is_all_reduce = kind == CollectiveKind::kAllReduce;
  if (communicator_.node_count > 1) {
    if (!is_all_reduce) return 1;
    return platform_.generation == GpuGeneration::kVolta ? 1.9 : 1.4;
  }
  if (!HasBlackwellRules() || !platform_.nvlink || (!is_all_reduce && !CountsOneBlock(kind))) {
    return 1;
  }
  constexpr double kMost = 0.4;
  constexpr double kDelta = 0.1;
  constexpr double kUnitBytes = 256 << 10;
  const double above = std::clamp(static_cast<double>(part_bytes) / kUnitBytes - 1, 0.0, 1.0);
  const double steps = std::max(0.0, StepCount(kind) - 1);
  return 1 + (1 - std::pow(kDelta / kMost, steps)) * (kMost - kDelta * above);
}

std::optional<double> NcclTuner::TimeUs(const TunedCall& call, Algorithm algorithm,
                                        Protocol protocol) const {
  if (platform_.library == CollectiveLibrary::kRccl) {
    return RcclTimeUs(call, communicator_, platform_, algorithm, protocol);
  }
  const bool in_switch = algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree;
  if (in_switch && call.kind != CollectiveKind::kAllGather && !call.nvls_reduces) return {};
  Model model = ModelOf(call.kind, algorithm, protocol);
  if (model.gb_per_s <= 0) return {};
  const int p = IndexOf(protocol);
  const double bytes = static_cast<double>(call.bytes);
  const int index = Log2(call.bytes >> 6);
  if (index < CorrectionsOf(algorithm, index)) {
    model.gb_per_s *= kTreeCorrection[static_cast<size_t>(p)][static_cast<size_t>(index)];
  }
  if (algorithm == Algorithm::kRing && p == kSimple) {
    model.latency_us *= RingPlateau(call.kind, call.bytes);
  }
  double time_us = model.latency_us + bytes / (1000 * model.gb_per_s);
  // Many additions in 8 bits lose too much.
  const bool is_fp8 =
      call.datatype == Datatype::kFloat8E4M3 || call.datatype == Datatype::kFloat8E5M2;
  if (algorithm == Algorithm::kRing && is_fp8 && communicator_.rank_count > 8 &&
      (call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kReduceScatter)) {
    time_us *= 1024;
  }
  return time_us;
}

std::optional<Protocol> NcclTuner::ProtocolBySize(const TunedCall& call) const {
  if (platform_.library != CollectiveLibrary::kRccl) return {};
  return RcclProtocol(call, communicator_);
}

std::optional<NcclTuner::Choice> NcclTuner::Choose(const TunedCall& call, Algorithm algorithm,
                                                   Protocol protocol) const {
  constexpr std::array kAlgorithms = {
      Algorithm::kTree,         Algorithm::kRing, Algorithm::kCollnetDirect,
      Algorithm::kCollnetChain, Algorithm::kNvls, Algorithm::kNvlsTree,
      Algorithm::kPat};
  constexpr std::array kProtocols = {Protocol::kLl, Protocol::kLl128, Protocol::kSimple};
  std::optional<Choice> choice;
  double least_us = 0;
  for (const Algorithm a : kAlgorithms) {
    if (algorithm != Algorithm::kUnstated && a != algorithm) continue;
    for (const Protocol p : kProtocols) {
      if (protocol != Protocol::kUnstated && p != protocol) continue;
      const std::optional<double> time_us = TimeUs(call, a, p);
      if (!time_us || (choice && *time_us >= least_us)) continue;
      choice = Choice{a, p};
      least_us = *time_us;
    }
  }
  return choice;
}

}  // namespace railyard
