// SPDX-License-Identifier: GPL-2.0-only
// Defines NVLink's constants: its PCI class as NCCL writes it, and its rate by compute capability.
#pragma once

#include <array>
#include <cstdint>

namespace railyard {

// The PCI class of an NVSwitch.
inline constexpr const char* kNvSwitchClass = "0x068000";

// Gives an NVLink's rate each way by compute capability (NVIDIA's whitepapers of P100, V100, A100,
// RTX A6000, H100 and B200).
struct NvlinkLaneRate {
  uint32_t sm;
  uint64_t rate_bps;
};
inline constexpr std::array kNvlinkLaneRates = {
    NvlinkLaneRate{60, 160'000'000'000}, NvlinkLaneRate{70, 200'000'000'000},
    NvlinkLaneRate{80, 200'000'000'000}, NvlinkLaneRate{86, 112'500'000'000},
    NvlinkLaneRate{90, 200'000'000'000}, NvlinkLaneRate{103, 400'000'000'000},
    NvlinkLaneRate{100, 400'000'000'000}};

}  // namespace railyard
