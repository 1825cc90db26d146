// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/server.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace railyard {

uint64_t ServerSpec::cable_count() const {
  if (layout != nullptr) return layout->nvlinks.size() + layout->host_paths.size();
  return uint64_t{gpus} * nvlink_lanes.size() + nvlink_mesh.size() + std::max(gpus, nic_count());
}

uint64_t ServerSpec::LanesOfGpu() const {
  auto lanes = std::accumulate(nvlink_lanes.begin(), nvlink_lanes.end(), uint64_t{0});
  for (const ServerLayout::NvlinkBundle& bundle : nvlink_mesh) {
    if (bundle.gpu == 0 || bundle.peer == 0) lanes += bundle.lanes;
  }
  return lanes;
}

ServerSpec ServerOf(ServerLayout layout) {
  ServerSpec server;
  server.gpus = layout.gpus;
  server.nics = static_cast<uint32_t>(layout.nic_rates_bps.size());
  if (!layout.nic_rates_bps.empty()) {
    server.nic_rate_bps =
        *std::max_element(layout.nic_rates_bps.begin(), layout.nic_rates_bps.end());
  }
  server.layout = std::make_shared<const ServerLayout>(std::move(layout));
  return server;
}

uint64_t NetworkSpec::server_count() const {
  uint64_t total = 0;
  for (const ServerSpec& kind : servers) total += kind.count;
  return total;
}

uint64_t NetworkSpec::gpu_count() const {
  uint64_t total = 0;
  for (const ServerSpec& kind : servers) total += uint64_t{kind.count} * kind.gpus;
  return total;
}

uint64_t NetworkSpec::nic_count() const {
  uint64_t total = 0;
  for (const ServerSpec& kind : servers) total += uint64_t{kind.count} * kind.nic_count();
  return total;
}

uint32_t NetworkSpec::most_nics_per_server() const {
  uint32_t most = 0;
  for (const ServerSpec& kind : servers) most = std::max(most, kind.nic_count());
  return most;
}

uint64_t NetworkSpec::cables_in_servers() const {
  uint64_t total = 0;
  for (const ServerSpec& kind : servers) total += kind.count * kind.cable_count();
  return total;
}

void CheckNetwork(const NetworkSpec& network, SpecChecker& check) {
  check.Count("servers", network.servers.size(), 1, kMaxServerKinds);
  for (size_t i = 0; i < network.servers.size(); ++i) {
    const ServerSpec& kind = network.servers[i];
    const auto field = [i](const char* name) { return fmt::format("servers[{}].{}", i, name); };
    check.Count(field("count"), kind.count, 1, kMaxFabricGpus);
    check.Count(field("gpus"), kind.gpus, 1, kMaxGpusPerServer);
    if (kind.nics) check.Count(field("nics"), *kind.nics, 1, kMaxGpusPerServer);
    check.Rate(field("nic_rate"), kind.nic_rate_bps);
    check.Rate(field("host_rate"), kind.host_rate_bps);
    check.Delay(field("host_delay"), kind.host_delay_ps);
    if (!kind.HasNvlink()) continue;
    check.Rate(field("nvlink_rate"), kind.nvlink_lane_rate_bps);
    check.Delay(field("nvlink_delay"), kind.nvlink_delay_ps);
    check.Delay(field("nvswitch_latency"), kind.nvswitch_latency_ps);
  }
  check.Delay("nic_delay", network.nic_delay_ps);
  check.Delay("switch_latency", network.switch_latency_ps);
  check.Delay("delay_spread", network.delay_spread_ps);
  if (!check.Clean()) return;
  if (const uint64_t gpus = network.gpu_count(); gpus > kMaxFabricGpus) {
    check.Add("servers",
              fmt::format("there are {} GPUs (expected at most {})", gpus, kMaxFabricGpus));
  }
}

}  // namespace railyard
