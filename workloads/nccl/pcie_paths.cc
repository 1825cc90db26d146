// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/pcie_paths.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace railyard {
namespace {

// speedArrayIntra and sm90SpeedArrayIntra (src/graph/search.cc), in GB/s.
constexpr std::array<double, 13> kPcieSpeeds = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 11> kHopperPcieSpeeds = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};

// NCCL counts 48 GB/s for PCIe 5.0 x16, of whose 63 GB/s here 55 are payload; other links are in
// proportion (kvDictPciGen, src/graph/topo.cc).
constexpr double kNcclShareOfPayload = 48.0 / 55.0;
// The link between two sockets (src/graph/topo.h): AMD_BW, ARM_BW, and SKL_QPI_BW of Intel's
// Skylake to Ice Lake. All of Intel's CPUs are assumed to be such, although NCCL has 22 and 40 for
// later ones; so are those of a mixed communicator.
double SocketGbPerS(CommunicatorCpu cpu) {
  if (cpu == CommunicatorCpu::kAmd) return 16;
  return cpu == CommunicatorCpu::kArm ? 6 : 10;
}
// INTEL_P2P_OVERHEAD: traffic through one of Intel's host bridges counts by this factor on PCIe.
double HostBridgeOverhead(CommunicatorCpu cpu) {
  return cpu == CommunicatorCpu::kAmd || cpu == CommunicatorCpu::kArm ? 1.0 : 1.2;
}

// One direction of a link: of a GPU, of a switch to its host bridge, or between two host bridges.
enum class LinkOf : uint8_t { kGpu, kSwitch, kSocket };
using LinkKey =
    std::tuple<LinkOf, int32_t, int32_t>;  // the last: 0 up, 1 down; or the other bridge

}  // namespace

PathType PciePathType(const PciePlace& a, const PciePlace& b) {
  if (a.host_bridge != b.host_bridge) return PathType::kSys;
  if (a.first_switch >= 0 && a.first_switch == b.first_switch) return PathType::kPix;
  if (a.last_switch >= 0 && a.last_switch == b.last_switch) return PathType::kPxb;
  return PathType::kPhb;
}

PathType P2pLevelOf(const CommunicatorLayout& layout, const NcclSettings& settings) {
  return settings.p2p_level.value_or(layout.cpu == CommunicatorCpu::kAmd ? PathType::kSys
                                                                         : PathType::kPxb);
}

LocalTransport LocalTransportOf(const CommunicatorLayout& layout, const NcclSettings& settings,
                                RankIndex from, RankIndex to) {
  const PathType level = P2pLevelOf(layout, settings);
  if (layout.nvlink && level >= PathType::kNvl) return LocalTransport::kNvlink;
  const PciePlace& a = layout.ranks[from].pcie;
  const PciePlace& b = layout.ranks[to].pcie;
  if (a.host_bridge < 0 || b.host_bridge < 0) return LocalTransport::kNone;
  if (layout.peer_access && PciePathType(a, b) <= level) {
    return LocalTransport::kPeerToPeer;
  }
  return settings.shm_disable ? LocalTransport::kNone : LocalTransport::kSharedMemory;
}

double PcieRingGbPerS(const CommunicatorLayout& layout, const NcclSettings& settings,
                      std::span<const RankIndex> ranks) {
  std::map<LinkKey, double> load;  // in rings
  std::map<LinkKey, double> gb_per_s;
  const auto count = [&](const LinkKey& link, double rings, double rate_gb_per_s) {
    load[link] += rings;
    gb_per_s[link] = rate_gb_per_s;
  };
  const auto pcie_gb_per_s = [](uint64_t bps) {
    return static_cast<double>(bps) / 8e9 * kNcclShareOfPayload;
  };
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankIndex from = ranks[i];
    const RankIndex to = ranks[(i + 1) % ranks.size()];
    const PciePlace& a = layout.ranks[from].pcie;
    const PciePlace& b = layout.ranks[to].pcie;
    const bool by_memory =
        LocalTransportOf(layout, settings, from, to) == LocalTransport::kSharedMemory;
    const PathType type = PciePathType(a, b);
    const bool through_bridge = by_memory || type >= PathType::kPhb;
    const double rings =
        through_bridge && type != PathType::kSys ? HostBridgeOverhead(layout.cpu) : 1.0;
    count({LinkOf::kGpu, static_cast<int32_t>(from), 0}, rings, pcie_gb_per_s(a.link_bps));
    count({LinkOf::kGpu, static_cast<int32_t>(to), 1}, rings, pcie_gb_per_s(b.link_bps));
    if (!through_bridge) continue;
    if (a.last_switch >= 0) {
      count({LinkOf::kSwitch, a.last_switch, 0}, rings, pcie_gb_per_s(a.uplink_bps));
    }
    if (b.last_switch >= 0) {
      count({LinkOf::kSwitch, b.last_switch, 1}, rings, pcie_gb_per_s(b.uplink_bps));
    }
    if (type == PathType::kSys) {
      count({LinkOf::kSocket, a.host_bridge, b.host_bridge}, rings, SocketGbPerS(layout.cpu));
    }
  }
  const auto fits = [&](double speed_gb_per_s) {
    return std::all_of(load.begin(), load.end(), [&](const auto& link) {
      return link.second * speed_gb_per_s <= gb_per_s.at(link.first) * 1.0001;
    });
  };
  const auto highest = [&](const auto& speeds) {
    const auto found = std::find_if(speeds.begin(), speeds.end(), fits);
    return found == speeds.end() ? speeds.back() : *found;
  };
  return layout.generation >= GpuGeneration::kHopper ? highest(kHopperPcieSpeeds)
                                                     : highest(kPcieSpeeds);
}

}  // namespace railyard
