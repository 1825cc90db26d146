// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/platform_scenario.h"

#include "simulator/measure/perf_point.h"

namespace railyard {

ScenarioBuilder ScenarioOf(const PlatformFabric& fabric) {
  scenario::Servers servers{.platform = fabric.platform, .count = fabric.nodes};
  if (fabric.gpus_per_node != 0) servers.gpus = fabric.gpus_per_node;
  if (fabric.nics_per_node != 0) servers.nics = fabric.nics_per_node;
  if (fabric.nic_rate_bps != 0) servers.nic_rate = DataRate{fabric.nic_rate_bps};
  if (fabric.nic_ports != 1) servers.nic_ports = fabric.nic_ports;
  if (!fabric.cpu.empty()) servers.cpu = fabric.cpu;
  ScenarioBuilder builder = PerfPoint::CommandScenario();
  builder.Fabric({servers});
  switch (fabric.network) {
    case NetworkKind::kInfiniBand:
      // Link-level credits, no congestion control.
      builder.Set("network.network_flow_control", "CREDITS");
      break;
    case NetworkKind::kRoce:
      builder.Set("nic.congestion_control.dcqcn");
      break;
    case NetworkKind::kEfa:
    case NetworkKind::kSocket:
      break;
  }
  return builder;
}

}  // namespace railyard
