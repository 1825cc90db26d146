// SPDX-License-Identifier: GPL-2.0-only
// Lists PCI Express links by generation and width, as /sys and NCCL name them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace railyard {

// Describes a PCIe speed: its name in the kernel, and the payload that one lane carries each way,
// after line code and packet overhead. A Gen5 x16 link has 63 GB/s after 128b/130b and about 55
// GB/s of payload with 256-byte packets (see platforms/dgx-h100.textproto): 27.5 Gb/s per lane. The
// other generations of that line code are in proportion; Gen1 and Gen2 carry less because of
// 8b/10b.
struct PcieSpeed {
  std::string_view name;        // link_speed, without what follows "GT/s"
  std::string_view short_name;  // of kernels up to 5.6
  uint64_t lane_bps;
};
inline constexpr std::array kPcieSpeeds = {PcieSpeed{"2.5 GT/s", "2.5 GT/s", 1'750'000'000},
                                           PcieSpeed{"5.0 GT/s", "5 GT/s", 3'500'000'000},
                                           PcieSpeed{"8.0 GT/s", "8 GT/s", 6'875'000'000},
                                           PcieSpeed{"16.0 GT/s", "16 GT/s", 13'750'000'000},
                                           PcieSpeed{"32.0 GT/s", "32 GT/s", 27'500'000'000},
                                           PcieSpeed{"64.0 GT/s", "64 GT/s", 55'000'000'000}};

// Returns the speed that a link_speed names, e.g. "32.0 GT/s PCIe".
inline std::optional<PcieSpeed> FindPcieSpeed(std::string_view link_speed) {
  constexpr std::string_view kSuffix = " PCIe";
  if (link_speed.ends_with(kSuffix)) link_speed.remove_suffix(kSuffix.size());
  for (const PcieSpeed& speed : kPcieSpeeds) {
    if (link_speed == speed.name || link_speed == speed.short_name) return speed;
  }
  return std::nullopt;
}

inline uint64_t PciePayloadBps(const PcieSpeed& speed, uint32_t lanes) {
  return speed.lane_bps * lanes;
}

// The delays of each link of a PCIe tree and of the link between two sockets, which topology dumps
// and bus scans do not give. Sources: topologies/platforms/pcie-8x3090.textproto.
inline constexpr int64_t kPcieLinkDelayPs = 150'000;
inline constexpr uint64_t kSocketLinkBps = 358'400'000'000;
inline constexpr int64_t kSocketLinkDelayPs = 70'000;

inline constexpr uint64_t kPcieGen3X16Bps = 6'875'000'000ULL * 16;

// Returns the link_speed and link_width whose payload rate is exactly `payload_bps`; if two fit,
// the wider, slower one.
inline std::optional<std::pair<std::string, uint32_t>> FindPcieLink(uint64_t payload_bps) {
  for (const PcieSpeed& speed : kPcieSpeeds) {
    for (const uint32_t lanes : {16u, 8u, 4u, 2u, 1u}) {
      if (PciePayloadBps(speed, lanes) != payload_bps) continue;
      return std::pair(std::string(speed.name) + " PCIe", lanes);
    }
  }
  return std::nullopt;
}

}  // namespace railyard
