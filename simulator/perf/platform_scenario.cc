// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/perf/platform_scenario.h"

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
    case NetworkKind::kSocket:  // TCP, which `nccl` asks for
      break;
    case NetworkKind::kEfa:
      // SRD: packets over all paths, placed in memory as they come, and repeated one by one (Shalev
      // et al.: "A Cloud-Optimized Transport Protocol for Elastic and Scalable HPC", IEEE Micro
      // 40(6), 2020). How it controls congestion is not public.
      text +=
          "network { load_balancing: SPRAYING }\n"
          "nic { recovery: SELECTIVE_REPEAT reorder_tolerance_packets: 63 }\n";
      break;
  }
  return text;
}

}  // namespace railyard
