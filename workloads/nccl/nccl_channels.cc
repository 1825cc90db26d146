// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/nccl_channels.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "traces/trace/nccl_version.h"
#include "workloads/nccl/mesh_rings.h"
#include "workloads/nccl/nccl_versions.h"
#include "workloads/nccl/rccl.h"

namespace railyard {
namespace {

// The path of a ring through a node: the GPU by which it enters and the NIC by which it leaves.
enum class RingPattern {
  // Enter and leave on one rail: the last GPU relays through the first one's NIC (PXN). NCCL's
  // crossNic 0.
  kOneRail,
  // Leave by the last GPU's NIC, one rail below the one entered by. NCCL_CROSS_NIC=1.
  kShift,
  // Pairs of rings: the one enters by rail a and leaves by b, the other the reverse, and every
  // second node swaps them, so that each hop stays on a rail. crossNic 2.
  kPairs,
  // In the order of the GPUs, independent of the NICs: without NVLink.
  kInOrder,
};

// Graph search on NVSwitch: 12 rings of 20 GB/s on A100 and of 30 on H100, 16 of 45 on Blackwell,
// as NCCL prints them (on GB300 with 2.29.7).
uint32_t RingsOneNode(GpuGeneration generation) {
  return generation == GpuGeneration::kBlackwell ? 16 : 12;
}
constexpr uint32_t kRingsNetwork = 8;  // eight NICs
constexpr uint32_t kRingsOneGpuPerNode = 2;
constexpr uint32_t kPcieRings = 1;
constexpr uint32_t kPcieP2pChannels = 2;     // ncclTopoGetNchannels, of all but NVLink
constexpr uint32_t kNvlinkP2pChannels = 36;  // ncclTopoGetNchannels: 2 x 18 NVLinks of an H100
constexpr uint64_t kPerChannelNetBytesPerSecond = 14'000'000'000ULL;  // P2P_PER_CHANNEL_NET_BW
constexpr uint64_t k200Gbps = 200'000'000'000ULL;
constexpr uint64_t k400Gbps = 400'000'000'000ULL;

uint32_t MaxChannels(uint32_t version) {
  return version >= 22500 ? 64 : 32;
}  // src/include/device.h

// NCCL prints one ring, in the order of the GPUs, for 8 GPUs without NVLink or P2P
// (github.com/NVIDIA/nccl-tests/issues/307) and for 4 of them (huggingface/accelerate issue 2183).
bool IsOverPcie(const CommunicatorLayout& layout) {
  return !layout.nvlink && layout.ranks.size() > layout.node_count();
}

struct RingPlan {
  uint32_t ring_count = 0;  // before duplication
  RingPattern pattern = RingPattern::kPairs;
  std::vector<uint32_t> rails{};  // used by rings in turn; empty: all
};

bool IsUsable(const RankPlace& place, const NcclSettings& settings) {
  const auto& nics = settings.unusable_nics;
  return std::find(nics.begin(), nics.end(), NicPlace{place.server, place.local_index}) ==
         nics.end();
}

// The plan for NICs that cannot be used.
void AvoidNics(const CommunicatorLayout& layout, const NcclSettings& settings,
               const std::vector<std::vector<RankIndex>>& nodes, RingPlan& plan) {
  plan.pattern = RingPattern::kOneRail;
  if (settings.nic_policy != NicPolicy::kReplan) return;
  const auto gpus = static_cast<uint32_t>(nodes.front().size());
  for (uint32_t rail = 0; rail < gpus; ++rail) {
    const bool is_usable = std::all_of(nodes.begin(), nodes.end(), [&](const auto& ranks) {
      return IsUsable(layout.ranks[ranks[rail]], settings);
    });
    if (is_usable) plan.rails.push_back(rail);
  }
  SIM_CHECK(!plan.rails.empty(), "no rail without a NIC that cannot be used");
  const auto left = static_cast<uint32_t>(plan.rails.size());
  plan.ring_count = left * std::max(1u, plan.ring_count / gpus);
}

// Rings for layouts the search was not run for: two a NIC up to four GPUs, as it finds for one and
// for four; of more about eight, as many as make the load of the NICs equal.
uint32_t GeneralRingCount(uint32_t gpus, uint32_t rings_max) {
  if (gpus <= 4) return kRingsOneGpuPerNode * gpus;
  const uint32_t unit = std::lcm(2u, gpus);
  if (unit > rings_max) return std::min(gpus, rings_max);
  return unit * std::max(1u, kRingsNetwork / unit);
}

RingPlan ChooseRings(const CommunicatorLayout& layout, const NcclSettings& settings,
                     const std::vector<std::vector<RankIndex>>& nodes,
                     std::vector<std::string>& assumptions) {
  const uint32_t gpus = static_cast<uint32_t>(nodes.front().size());
  if (IsOverPcie(layout)) {
    if (nodes.size() > 1) {
      assumptions.push_back(
          "rings between servers without NVLink: one in the order of their GPUs, each of which "
          "sends by its own NIC");
    }
    return {kPcieRings, RingPattern::kInOrder};
  }
  if (nodes.size() == 1) {
    if (gpus != 4 && gpus != 8) {
      assumptions.push_back(
          fmt::format("channels of {} GPUs in one server: taken as for 4 and 8 GPUs ({} rings)",
                      gpus, RingsOneNode(layout.generation)));
    }
    return {RingsOneNode(layout.generation), RingPattern::kPairs};
  }
  const bool uniform = std::all_of(nodes.begin(), nodes.end(),
                                   [&](const auto& ranks) { return ranks.size() == gpus; });
  RingPlan plan;
  plan.pattern = settings.cross_nic == 0   ? RingPattern::kOneRail
                 : settings.cross_nic == 1 ? RingPattern::kShift
                                           : RingPattern::kPairs;
  if (layout.nic_bps != k400Gbps && layout.nic_bps != k200Gbps) {
    assumptions.push_back(fmt::format("channels with NICs of {} Gb/s: taken as for {} Gb/s",
                                      layout.nic_bps / 1'000'000'000,
                                      layout.nic_bps > k200Gbps ? 400 : 200));
  }
  // At 200 Gb/s per NIC the detour over PXN costs a ring nothing, and crossNic 0 is tried first.
  const bool pxn_is_free = layout.nic_bps <= k200Gbps && settings.gpu_direct();
  if (uniform && gpus == 8 && layout.gpus_per_server == 8) {
    plan.ring_count = kRingsNetwork;
    if (pxn_is_free && plan.pattern == RingPattern::kPairs) plan.pattern = RingPattern::kOneRail;
  } else if (uniform && gpus == 1) {
    plan.ring_count = kRingsOneGpuPerNode;
  } else if (uniform && gpus == 4 && layout.gpus_per_server == 4) {
    plan.ring_count = kRingsNetwork;
    if (plan.pattern == RingPattern::kPairs) plan.pattern = RingPattern::kOneRail;
    assumptions.push_back(
        "rings of servers with 4 GPUs: 8 rings that enter and leave on one rail, as NCCL finds; "
        "their order inside the server is assumed (descending)");
  } else {
    uint32_t gpus_min = gpus;
    for (const auto& ranks : nodes) {
      gpus_min = std::min(gpus_min, static_cast<uint32_t>(ranks.size()));
    }
    plan.ring_count = GeneralRingCount(gpus_min, MaxChannels(settings.version) / 2);
    assumptions.push_back(
        fmt::format("rings of a communicator with {} of {} GPUs per server{}: the pattern of full "
                    "servers, over "
                    "the GPUs that take part, {} rings",
                    gpus_min, layout.gpus_per_server, uniform ? "" : " (fewest; servers differ)",
                    plan.ring_count));
  }
  return plan;
}

// Plans a mesh's rings, which share no NVLink. Between servers each ring is cut open before the GPU
// of the ring's number.
RingPlan PlanMesh(size_t ring_count, size_t node_count, std::vector<std::string>& assumptions) {
  if (node_count > 1) {
    assumptions.push_back(
        fmt::format("rings between servers whose NVLinks join GPUs in pairs: the {} rings of one "
                    "server, cut open at one GPU after the other",
                    ring_count));
  }
  return {.ring_count = static_cast<uint32_t>(ring_count)};
}

// Appends a node's part of one of RCCL's rings between servers, which leaves by the last GPU's NIC.
void AppendRcclNode(const CommunicatorLayout& layout, const std::vector<RankIndex>& node_ranks,
                    const std::vector<uint32_t>& rccl_ring, std::vector<uint32_t>& order,
                    std::vector<uint32_t>& sending_nic) {
  for (const uint32_t gpu : rccl_ring) order.push_back(node_ranks[gpu]);
  sending_nic[order.back()] = layout.ranks[order.back()].local_index;
}

// Does the same as AppendNode for a mesh.
void AppendMeshNode(const CommunicatorLayout& layout, const std::vector<RankIndex>& node_ranks,
                    const std::vector<uint32_t>& mesh_ring, uint32_t ring,
                    std::vector<uint32_t>& order, std::vector<uint32_t>& sending_nic) {
  const auto enter = std::find(mesh_ring.begin(), mesh_ring.end(), ring % mesh_ring.size());
  for (auto at = enter; at != mesh_ring.end(); ++at) order.push_back(node_ranks[*at]);
  for (auto at = mesh_ring.begin(); at != enter; ++at) order.push_back(node_ranks[*at]);
  sending_nic[order.back()] = layout.ranks[order.back()].local_index;
}

// Appends node `node`'s part of ring `ring`: the ranks in order; the NIC the last one leaves by.
void AppendNode(const CommunicatorLayout& layout, const std::vector<RankIndex>& node_ranks,
                uint32_t node, uint32_t ring, RingPattern pattern, const NcclSettings& settings,
                std::vector<uint32_t>& order, std::vector<uint32_t>& sending_nic) {
  const uint32_t gpus = static_cast<uint32_t>(node_ranks.size());
  if (pattern == RingPattern::kInOrder) {
    order.insert(order.end(), node_ranks.begin(), node_ranks.end());
    sending_nic[order.back()] = layout.ranks[order.back()].local_index;
    return;
  }
  bool descending = true;
  uint32_t enter = ring;
  if (pattern == RingPattern::kPairs) {
    enter = ring ^ (node & 1);
    descending = enter % 2 == 0;
  }
  enter %= gpus;
  while (!IsUsable(layout.ranks[node_ranks[enter]], settings)) enter = (enter + 1) % gpus;
  for (uint32_t step = 0; step < gpus; ++step) {
    const uint32_t index = descending ? (enter + gpus - step) % gpus : (enter + step) % gpus;
    order.push_back(node_ranks[index]);
  }
  const uint32_t leave_by =
      pattern == RingPattern::kOneRail && settings.UsesPxn() ? node_ranks[enter] : order.back();
  sending_nic[order.back()] = layout.ranks[leave_by].local_index;
}

void RotateToRankZero(std::vector<uint32_t>& ring) {
  std::rotate(ring.begin(), std::find(ring.begin(), ring.end(), 0u), ring.end());
}

// The rings that a log states. Its lines do not say by which NIC a ring leaves a node: by that of
// the GPU by which it came in, over PXN, where the next node's first GPU is on that rail and the
// own last one is not; else by the last one's own.
void TakeStatedRings(const CommunicatorLayout& layout, const NcclSettings& settings,
                     CommunicatorChannels& channels) {
  const size_t rank_count = layout.ranks.size();
  for (const std::vector<uint32_t>& ring : layout.rings) {
    std::vector<uint32_t> sending_nic(rank_count);
    for (size_t i = 0; i < rank_count; ++i) {
      const RankPlace& place = layout.ranks[ring[i]];
      const RankPlace& next = layout.ranks[ring[(i + 1) % rank_count]];
      sending_nic[ring[i]] = place.local_index;
      if (next.node == place.node || !settings.UsesPxn() || !layout.nvlink) continue;
      size_t entry = i;
      const auto before = [&](size_t at) { return (at + rank_count - 1) % rank_count; };
      while (layout.ranks[ring[before(entry)]].node == place.node && before(entry) != i) {
        entry = before(entry);
      }
      const uint32_t entered_by = layout.ranks[ring[entry]].local_index;
      if (entered_by == next.local_index) sending_nic[ring[i]] = entered_by;
    }
    channels.rings.push_back(ring);
    channels.sending_nic.push_back(std::move(sending_nic));
  }
  // They are printed after duplication.
  channels.graph_channel_count = std::max(1u, static_cast<uint32_t>(channels.rings.size()) / 2);
}

// ncclTopoPostset and copyChannels (src/graph/connect.cc): all rings are duplicated once (those of
// a log are already), then limited to MAX_NCHANNELS, then repeated up to MIN_NCHANNELS.
void SetChannelCount(const NcclSettings& settings, bool is_duplicated,
                     CommunicatorChannels& channels) {
  const auto resize = [&](size_t count) {
    const size_t base = channels.rings.size();
    if (count < base) {
      channels.rings.resize(count);
      channels.sending_nic.resize(count);
    }
    channels.rings.reserve(count);
    channels.sending_nic.reserve(count);
    for (size_t c = base; c < count; ++c) {
      channels.rings.push_back(channels.rings[c - base]);
      channels.sending_nic.push_back(channels.sending_nic[c - base]);
    }
  };
  const size_t channels_max = MaxChannels(settings.version);
  if (!is_duplicated) resize(std::min(channels.rings.size() * 2, channels_max));
  if (settings.max_nchannels != 0 && settings.max_nchannels < channels.rings.size()) {
    resize(settings.max_nchannels);
  }
  const size_t wanted = std::min<size_t>(settings.min_nchannels, channels_max);
  if (wanted > channels.rings.size()) resize(wanted);
}

// Channels a remote peer gets: ncclTopoGetNchannels and ncclTopoComputeP2pChannels
// (src/graph/paths.cc), with one NIC per GPU.
uint32_t RemoteP2pChannels(const CommunicatorLayout& layout, const NcclSettings& settings,
                           uint32_t p2p_channel_count) {
  const uint64_t rank_count = layout.ranks.size();
  if (settings.nchannels_per_net_peer != 0) return settings.nchannels_per_net_peer;
  if (settings.version < 22900) {
    return 2 * rank_count > 4ull * p2p_channel_count ? 1 : 2;
  }
  const uint64_t nic_bytes_per_second = layout.nic_bps / 8;
  return static_cast<uint32_t>(DivideUp(nic_bytes_per_second, kPerChannelNetBytesPerSecond));
}

// Two for each NVLink of the narrowest pair (ncclTopoGetNchannels).
uint32_t LocalP2pChannels(const CommunicatorLayout& layout) {
  if (!layout.nvlink) return kPcieP2pChannels;
  uint32_t channels = kNvlinkP2pChannels;
  for (const auto& of_gpu : layout.mesh_lanes) {
    for (const uint32_t lanes : of_gpu) {
      if (lanes > 0) channels = std::min(channels, 2 * lanes);
    }
  }
  return channels;
}

void SetP2pChannels(const CommunicatorLayout& layout, const NcclSettings& settings,
                    CommunicatorChannels& channels) {
  const uint32_t channel_count = static_cast<uint32_t>(channels.rings.size());
  const bool network = layout.node_count() > 1;
  channels.p2p_channel_count = std::bit_ceil(channel_count);
  uint32_t per_peer = channel_count;
  if (!network || layout.ranks.size() > layout.node_count()) {
    per_peer = std::min(per_peer, LocalP2pChannels(layout));  // some pair shares a server
  }
  if (network) {
    per_peer = std::min(per_peer, RemoteP2pChannels(layout, settings, channel_count));
  }
  per_peer = std::bit_ceil(per_peer);
  if (network && settings.version >= 22900 && settings.nchannels_per_net_peer == 0) {
    // Eight works of a batch share a channel; with more peers than that, fewer channels for each.
    const uint64_t batches = (layout.ranks.size() + 7) / 8;
    while (per_peer > 1 && per_peer * batches > channels.p2p_channel_count) per_peer /= 2;
  }
  channels.p2p_channels_per_peer = per_peer;
}

// Notes a version whose rules are not known, and what is taken in its place.
void NoteVersion(const CommunicatorLayout& layout, const NcclSettings& settings,
                 std::vector<std::string>& assumptions) {
  if (settings.version >= kFirstUnknownVersion) {
    assumptions.push_back(
        fmt::format("NCCL {}: its rules are not known; taken as those of 2.32, the last that are",
                    NcclVersionText(settings.version)));
  } else if (settings.version >= kFirstPartlyKnownVersion) {
    assumptions.push_back(
        fmt::format("NCCL {}: of its rules those of the tuner are known; channels, chunks and "
                    "kernels are taken as those of 2.30",
                    NcclVersionText(settings.version)));
  } else if (layout.generation == GpuGeneration::kBlackwell &&
             settings.version < kFirstBlackwellVersion) {
    assumptions.push_back(
        fmt::format("NCCL {} with Blackwell, which it does not know: taken as 2.25 chooses",
                    NcclVersionText(settings.version)));
  }
}

using NodeRanks = std::vector<std::vector<RankIndex>>;

// Chooses the rings: RCCL's, those of a mesh of NVLinks, or those of NCCL's search.
RingPlan PlanRings(const CommunicatorLayout& layout, const NcclSettings& settings,
                   const NodeRanks& nodes, CommunicatorChannels& channels) {
  const bool is_uniform = std::all_of(nodes.begin(), nodes.end(), [&](const auto& ranks) {
    return ranks.size() == layout.mesh_lanes.size();
  });
  if (HasRcclRings(layout)) {
    channels.mesh_rings = RcclRings(static_cast<uint32_t>(nodes.size()));
    channels.assumptions.push_back(
        "RCCL on MI300X: its rings, and what its tuner chooses among rings and trees; MSCCL and "
        "direct AllGather, which it uses for small calls, are not modelled, and xGMI alone limits "
        "what a channel copies");
    return RingPlan{static_cast<uint32_t>(channels.mesh_rings.size())};
  }
  if (is_uniform) channels.mesh_rings = FindMeshRings(layout.mesh_lanes);
  return channels.mesh_rings.empty()
             ? ChooseRings(layout, settings, nodes, channels.assumptions)
             : PlanMesh(channels.mesh_rings.size(), nodes.size(), channels.assumptions);
}

// Makes the plan avoid NICs that cannot be used, or notes that it does not.
void AvoidUnusableNics(const CommunicatorLayout& layout, const NcclSettings& settings,
                       const NodeRanks& nodes, RingPlan& plan, CommunicatorChannels& channels) {
  if (nodes.size() == 1 || settings.unusable_nics.empty()) return;
  const bool is_mesh = !channels.mesh_rings.empty();
  if (!is_mesh && plan.pattern != RingPattern::kInOrder) {
    AvoidNics(layout, settings, nodes, plan);
    return;
  }
  channels.assumptions.push_back(
      fmt::format("NICs that cannot be used: rings over {} do not avoid them",
                  is_mesh ? "NVLinks that join GPUs in pairs" : "PCIe"));
}

// Notes rings that NCCL would not have without PXN.
void NoteRingsWithoutPxn(const NcclSettings& settings, RingPattern pattern,
                         CommunicatorChannels& channels) {
  if (pattern != RingPattern::kOneRail || settings.UsesPxn()) return;
  channels.assumptions.push_back(
      settings.gpu_direct()
          ? "NCCL_PXN_DISABLE=1 where rings enter and leave on one rail through PXN: same rings, "
            "each GPU sends by its own NIC"
          : "TCP sockets where rings enter and leave on one rail through PXN: same rings, each "
            "GPU sends by its own NIC");
}

void AddRing(const CommunicatorLayout& layout, const NcclSettings& settings, const NodeRanks& nodes,
             const RingPlan& plan, CommunicatorChannels& channels) {
  const auto ring = static_cast<uint32_t>(channels.rings.size());
  std::vector<uint32_t> order;
  order.reserve(layout.ranks.size());
  std::vector<uint32_t> sending_nic(layout.ranks.size());
  for (size_t rank = 0; rank < layout.ranks.size(); ++rank) {
    sending_nic[rank] = layout.ranks[rank].local_index;
  }
  if (HasRcclRings(layout)) {
    for (const auto& ranks : nodes) {
      AppendRcclNode(layout, ranks, channels.mesh_rings[ring], order, sending_nic);
    }
  } else if (!channels.mesh_rings.empty()) {
    for (const auto& ranks : nodes) {
      AppendMeshNode(layout, ranks, channels.mesh_rings[ring], ring, order, sending_nic);
    }
  } else if (nodes.size() == 1) {
    order.assign(nodes.front().begin(), nodes.front().end());
  } else {
    for (uint32_t node = 0; node < nodes.size(); ++node) {
      const uint32_t rail = plan.rails.empty() ? ring : plan.rails[ring % plan.rails.size()];
      AppendNode(layout, nodes[node], node, rail, plan.pattern, settings, order, sending_nic);
    }
  }
  RotateToRankZero(order);
  channels.rings.push_back(std::move(order));
  channels.sending_nic.push_back(std::move(sending_nic));
}

}  // namespace

CommunicatorChannels BuildChannels(const CommunicatorLayout& layout, const NcclSettings& settings) {
  CommunicatorChannels channels;
  if (layout.ranks.size() <= 1) return channels;
  const NodeRanks nodes = RanksByNode(layout);
  for (const auto& ranks : nodes) {
    SIM_CHECK(!ranks.empty(), "node numbers of a communicator have a gap");
  }
  NoteVersion(layout, settings, channels.assumptions);
  // A policy for NICs that cannot be used makes different rings.
  const bool are_stated = !layout.rings.empty() && settings.unusable_nics.empty();
  if (are_stated) {
    TakeStatedRings(layout, settings, channels);
  } else {
    RingPlan plan = PlanRings(layout, settings, nodes, channels);
    AvoidUnusableNics(layout, settings, nodes, plan, channels);
    channels.graph_channel_count = plan.ring_count;
    if (nodes.size() > 1 && layout.ranks.size() > nodes.size()) {
      NoteRingsWithoutPxn(settings, plan.pattern, channels);
    }
    for (uint32_t ring = 0; ring < plan.ring_count; ++ring) {
      AddRing(layout, settings, nodes, plan, channels);
    }
  }
  SetChannelCount(settings, are_stated, channels);
  SetP2pChannels(layout, settings, channels);
  return channels;
}

}  // namespace railyard
