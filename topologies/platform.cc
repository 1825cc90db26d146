// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platform.h"

namespace railyard {

const std::vector<Platform>& Platforms() {
  // What a row leaves out is a DGX H100's.
  static const std::vector<Platform> kPlatforms = {
      {.name = "dgx-h100",
       .description = "8 H100 (NVLink4, 450 GB/s each way), 8 NICs of 400 Gb/s",
       .source = "NVIDIA DGX H100 user guide; H100 whitepaper",
       .server = {}},
      {.name = "dgx-h200",
       .description = "8 H200 (NVLink4, 450 GB/s each way), 8 NICs of 400 Gb/s",
       .source = "NVIDIA DGX H200 user guide: an H100's NVLink and NICs",
       .server = {}},
      {.name = "dgx-a100",
       .description = "8 A100 (NVLink3, 300 GB/s each way), 8 NICs of 200 Gb/s",
       .source = "NVIDIA DGX A100 user guide; A100 whitepaper: 12 links, 6 NVSwitches",
       // PCIe 4.0 x16: half of 5.0.
       .server = {.nvlink_lanes = {2, 2, 2, 2, 2, 2},
                  .host_rate_bps = 220'000'000'000,
                  .nic_rate_bps = 200'000'000'000}},
      {.name = "dgx-b200",
       .description = "8 B200 (NVLink5, 900 GB/s each way), 8 NICs of 400 Gb/s",
       .source = "NVIDIA DGX B200 data sheet: 2 NVSwitches, 14.4 TB/s",
       .server = {.nvlink_lanes = {9, 9}, .nvlink_lane_rate_bps = 400'000'000'000}},
      {.name = "gb200-nvl72",
       .description = "72 B200 in one island (NVLink5, 900 GB/s each way), 72 NICs of 400 Gb/s",
       .source = "NVIDIA GB200 NVL72 data sheet: 9 switch trays of 2 NVSwitches, 130 TB/s",
       .server = {.gpus = 72,
                  .nvlink_lanes = std::vector<uint32_t>(18, 1),
                  .nvlink_lane_rate_bps = 400'000'000'000}},
      {.name = "hpn-h800",
       .description = "8 H800 (NVLink, 200 GB/s each way), 8 NICs with ports of 200 Gb/s",
       .source = "Qian et al.: \"Alibaba HPN\", SIGCOMM 2024: 400 GB/s of NVLink, 2 x 200 Gb/s",
       .server = {.nvlink_lanes = {2, 2, 2, 2}, .nic_rate_bps = 200'000'000'000}},
      {.name = "single-gpu",
       .description = "1 GPU and 1 NIC of 400 Gb/s, no NVLink",
       .source = "a building block for direct networks",
       .server = {.gpus = 1, .nvlink_lanes = {}}},
  };
  return kPlatforms;
}

std::optional<ServerSpec> FindPlatform(std::string_view name) {
  for (const Platform& platform : Platforms()) {
    if (platform.name == name) return platform.server;
  }
  return std::nullopt;
}

}  // namespace railyard
