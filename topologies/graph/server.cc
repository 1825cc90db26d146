// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/server.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr uint32_t kMaxSockets = 8;
constexpr uint32_t kMaxSwitchesPerSocket = 16;

}  // namespace

uint64_t ServerSpec::cable_count() const {
  const uint64_t pcie_cables = PcieLinksOf(*this).size();
  if (layout != nullptr) return layout->nvlinks.size() + layout->host_paths.size() + pcie_cables;
  const uint64_t host_cables = pcie ? pcie_cables : std::max(gpus, nic_count());
  return uint64_t{gpus} * nvlink_lanes.size() + nvlink_mesh.size() + host_cables;
}

std::vector<ServerLayout::PcieLink> PcieLinksOf(const ServerSpec& server) {
  using enum ServerLayout::PcieKind;
  if (server.layout != nullptr) return server.layout->pcie_links;
  std::vector<ServerLayout::PcieLink> links;
  if (!server.pcie) return links;
  const ServerSpec::PcieTree& tree = *server.pcie;
  const uint32_t switches = tree.sockets * tree.switches_per_socket;
  const auto add = [&](ServerLayout::PcieDevice from, ServerLayout::PcieDevice to) {
    links.push_back({from, to, server.host_rate_bps, server.host_delay_ps});
  };
  for (uint32_t gpu = 0; gpu < server.gpus; ++gpu) {
    const auto place = [&](uint32_t places) {
      return static_cast<uint32_t>(uint64_t{gpu} * places / server.gpus);
    };
    add({kGpu, gpu}, switches > 0 ? ServerLayout::PcieDevice{kSwitch, place(switches)}
                                  : ServerLayout::PcieDevice{kHostBridge, place(tree.sockets)});
  }
  for (uint32_t nic = 0; nic < server.nic_count(); ++nic) {
    const uint64_t socket = uint64_t{nic} * tree.sockets / server.nic_count();
    add({kNic, nic}, {kHostBridge, static_cast<uint32_t>(socket)});
  }
  for (uint32_t index = 0; index < switches; ++index) {
    add({kSwitch, index}, {kHostBridge, index / tree.switches_per_socket});
  }
  for (uint32_t a = 0; a < tree.sockets; ++a) {
    for (uint32_t b = a + 1; b < tree.sockets; ++b) {
      links.push_back(
          {{kHostBridge, a}, {kHostBridge, b}, tree.socket_rate_bps, tree.socket_delay_ps});
    }
  }
  return links;
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
  server.compute_capability = layout.compute_capability;
  server.peer_access = layout.peer_access;
  server.cpu = layout.cpu;
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

uint64_t NetworkSpec::nic_port_count() const {
  uint64_t total = 0;
  for (const ServerSpec& kind : servers) {
    total += uint64_t{kind.count} * kind.nic_count() * kind.nic_ports;
  }
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

void CheckNetwork(const NetworkSpec& network, SpecChecker& check, uint32_t nic_ports_max) {
  check.Count("servers", network.servers.size(), 1, kMaxServerKinds);
  for (size_t i = 0; i < network.servers.size(); ++i) {
    const ServerSpec& kind = network.servers[i];
    const auto field = [i](const char* name) { return fmt::format("servers[{}].{}", i, name); };
    check.Count(field("count"), kind.count, 1, kMaxFabricGpus);
    check.Count(field("gpus"), kind.gpus, 1, kMaxGpusPerServer);
    if (kind.nics) check.Count(field("nics"), *kind.nics, 1, kMaxGpusPerServer);
    check.Rate(field("nic_rate"), kind.nic_rate_bps);
    check.Count(field("nic_ports"), kind.nic_ports, 1, nic_ports_max);
    check.Rate(field("host_rate"), kind.host_rate_bps);
    check.Delay(field("host_delay"), kind.host_delay_ps);
    if (kind.pcie) {
      check.Count(field("pcie.sockets"), kind.pcie->sockets, 1, kMaxSockets);
      check.Count(field("pcie.switches_per_socket"), kind.pcie->switches_per_socket, 0,
                  kMaxSwitchesPerSocket);
    }
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
