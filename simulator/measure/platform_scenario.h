// SPDX-License-Identifier: GPL-2.0-only
// What a scenario has to say for a platform's reference fabric: rail-optimized, every leaf and
// spine as many as make it non-blocking.
#pragma once

#include <cstdint>
#include <string>

namespace railyard {

// The network between servers.
enum class NetworkKind : uint8_t { kInfiniBand, kRoce, kEfa, kSocket };

struct PlatformFabric {
  std::string platform = "dgx-h100";  // topologies/platforms/platform.h
  uint32_t nodes = 1;
  uint32_t gpus_per_node = 0;  // 0: the platform's
  uint32_t nics_per_node = 0;  // 0: the platform's
  uint64_t nic_rate_bps = 0;   // of each; 0: the platform's
  std::string cpu{};           // who made it; empty: the platform's
  NetworkKind network = NetworkKind::kRoce;
};

// The blocks `fabric`, `nic` and `network`. TCP sockets and EFA are what `nccl` says (NET), with
// the defaults of both.
std::string ScenarioOf(const PlatformFabric& fabric);

}  // namespace railyard
