// SPDX-License-Identifier: GPL-2.0-only
// Describes a server part by part, as a dump of a real one does. It covers servers whose GPUs
// differ in their NVLinks or in the paths to their NICs, which a ServerSpec cannot express.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/cpu_vendor.h"

namespace railyard {

struct ServerLayout {
  // Describes parallel NVLinks from a GPU to an NVSwitch or to a GPU of a higher index.
  struct NvlinkBundle {
    uint32_t gpu = 0;
    bool is_to_gpu = false;
    uint32_t peer = 0;  // index of the NVSwitch or GPU
    uint32_t lanes = 1;
    auto operator<=>(const NvlinkBundle&) const = default;
  };
  // Describes the path from a GPU to its NIC.
  struct HostPath {
    uint32_t gpu = 0;
    uint32_t nic = 0;
    uint64_t rate_bps = 0;  // after packet overhead
    auto operator<=>(const HostPath&) const = default;
  };

  // Names the ends of a PcieLink, which is part of the tree of PCIe switches and host bridges or
  // joins two host bridges.
  enum class PcieKind : uint8_t { kGpu, kNic, kSwitch, kHostBridge };
  struct PcieDevice {
    PcieKind kind = PcieKind::kGpu;
    uint32_t index = 0;
    auto operator<=>(const PcieDevice&) const = default;
  };
  struct PcieLink {
    PcieDevice from;
    PcieDevice to;
    uint64_t rate_bps = 0;  // after packet overhead
    int64_t delay_ps = 0;
    auto operator<=>(const PcieLink&) const = default;
  };

  uint32_t gpus = 0;
  uint32_t compute_capability = 0;  // as in Device
  bool peer_access = true;
  CpuVendor cpu = CpuVendor::kUnknown;
  uint32_t nvswitches = 0;
  uint64_t nvlink_lane_rate_bps = 0;  // 0: no NVLink
  std::vector<NvlinkBundle> nvlinks{};
  std::vector<uint64_t> nic_rates_bps{};  // by NIC
  std::vector<HostPath> host_paths{};     // one per GPU, by GPU; or instead:
  uint32_t pcie_switches = 0;
  uint32_t host_bridges = 0;
  std::vector<PcieLink> pcie_links{};

  bool operator==(const ServerLayout&) const = default;
};

}  // namespace railyard
