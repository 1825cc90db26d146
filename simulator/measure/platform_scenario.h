// SPDX-License-Identifier: GPL-2.0-only
// Builds a scenario on a platform's reference fabric: rail-optimized, non-blocking.
#pragma once

#include <cstdint>
#include <string>

#include "railyard/scenario_builder.h"

namespace railyard {

// Names the kind of network between servers.
enum class NetworkKind : uint8_t { kInfiniBand, kRoce, kEfa, kSocket };

struct PlatformFabric {
  std::string platform = "dgx-h100";  // topologies/platforms/platform.h
  uint32_t nodes = 1;
  uint32_t gpus_per_node = 0;  // 0: the platform's
  uint32_t nics_per_node = 0;  // 0: the platform's
  uint64_t nic_rate_bps = 0;   // of each port; 0: the platform's
  uint32_t nic_ports = 1;      // of each NIC
  std::string cpu{};           // its vendor; empty: the platform's
  NetworkKind network = NetworkKind::kRoce;
};

// Returns a scenario with the blocks `fabric`, `nic` and `network`. TCP sockets and EFA are
// selected in `nccl` (NET) and have their own defaults.
ScenarioBuilder ScenarioOf(const PlatformFabric& fabric);

}  // namespace railyard
