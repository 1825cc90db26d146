// SPDX-License-Identifier: GPL-2.0-only
// Holds the prices and the power of network parts, from a price file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

enum class NetworkPart : uint8_t {
  kSwitchPort,
  kSwitchTransceiver,
  kNicTransceiver,
  kCable,
  kNicPort,
  kCircuitPort,
};
inline constexpr int kNetworkPartCount = 6;
std::string_view NetworkPartName(NetworkPart part);  // "switch_port", …, as in the price file

// Holds the price and the power of a part at this rate; other rates are in proportion. An absent
// figure is not counted.
struct PartPrice {
  uint64_t rate_bps = 400'000'000'000;
  std::optional<double> cost{};
  std::optional<double> watts{};
  std::string cost_source{};
  std::string watts_source{};
};

struct Prices {
  std::string name;
  std::string currency;
  std::array<PartPrice, kNetworkPartCount> parts;
};

// Loads a railyard.protos.Prices in text. Returns nullopt after an error; every mistake is a
// finding.
std::optional<Prices> LoadPrices(const std::string& path, Diagnostics& diagnostics);
// Returns topologies/prices/public-2024.textproto, which the build embeds.
const Prices& PublicPrices();

}  // namespace railyard
