// SPDX-License-Identifier: GPL-2.0-only
// A server part by part, as a dump of a real one gives it: where GPUs differ in their NVLinks or in
// the way to their NIC, which a ServerSpec's few numbers cannot say.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

struct ServerLayout {
  // Of a GPU, to an NVSwitch or to a GPU of a higher index.
  struct NvlinkBundle {
    uint32_t gpu = 0;
    bool is_to_gpu = false;
    uint32_t peer = 0;  // index of the NVSwitch or GPU
    uint32_t lanes = 1;
    auto operator<=>(const NvlinkBundle&) const = default;
  };
  // The way from a GPU to its NIC.
  struct HostPath {
    uint32_t gpu = 0;
    uint32_t nic = 0;
    uint64_t rate_bps = 0;  // after packet overhead
    auto operator<=>(const HostPath&) const = default;
  };

  uint32_t gpus = 0;
  uint32_t nvswitches = 0;
  uint64_t nvlink_lane_rate_bps = 0;  // 0: no NVLink
  std::vector<NvlinkBundle> nvlinks{};
  std::vector<uint64_t> nic_rates_bps{};  // by NIC
  std::vector<HostPath> host_paths{};     // one per GPU, by GPU

  bool operator==(const ServerLayout&) const = default;
};

}  // namespace railyard
