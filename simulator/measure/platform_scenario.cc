// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/platform_scenario.h"

#include <fmt/format.h>

namespace railyard {

std::string ScenarioOf(const PlatformFabric& fabric) {
  std::string servers = fmt::format("platform: \"{}\" count: {}", fabric.platform, fabric.nodes);
  if (fabric.gpus_per_node != 0) servers += fmt::format(" gpus: {}", fabric.gpus_per_node);
  if (fabric.nics_per_node != 0) servers += fmt::format(" nics: {}", fabric.nics_per_node);
  if (fabric.nic_rate_bps != 0) {
    servers += fmt::format(" nic_rate: \"{}bps\"", fabric.nic_rate_bps);
  }
  if (!fabric.cpu.empty()) servers += fmt::format(" cpu: \"{}\"", fabric.cpu);
  std::string text =
      fmt::format("fabric {{ rail_optimized {{ mixed_servers {{ {} }} }} }}\n", servers);
  switch (fabric.network) {
    case NetworkKind::kInfiniBand:
      // Link-level credits, no congestion control.
      text += "network { network_flow_control: CREDITS }\n";
      break;
    case NetworkKind::kRoce:
      text += "nic { congestion_control { dcqcn {} } }\n";
      break;
    case NetworkKind::kEfa:
    case NetworkKind::kSocket:
      break;
  }
  return text;
}

}  // namespace railyard
