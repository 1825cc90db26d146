// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/fabric_builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/mix64.h"

namespace railyard {

FabricBuilder::FabricBuilder(const NetworkSpec& network) : network_(network) {
  fabric_.name = network.name;
}

std::vector<BuiltNic> FabricBuilder::AddServers() {
  std::vector<BuiltNic> nics;
  ServerIndex server{0};
  for (const ServerSpec& kind : network_.servers) {
    for (uint32_t i = 0; i < kind.count; ++i) AddServer(server++, kind, nics);
  }
  return nics;
}

void FabricBuilder::AddServer(ServerIndex server, const ServerSpec& spec,
                              std::vector<BuiltNic>& nics) {
  const auto add = [&](DeviceKind kind, const char* noun, uint32_t index, int64_t latency_ps) {
    return AddPart(server, kind, noun, index, latency_ps);
  };
  std::vector<DeviceId> gpus;
  for (uint32_t i = 0; i < spec.gpus; ++i) {
    gpus.push_back(fabric_.AddDevice({.name = fmt::format("server{}/gpu{}", server, i),
                                      .kind = DeviceKind::kGpu,
                                      .server = server,
                                      .local_index = static_cast<int32_t>(i),
                                      .compute_capability = spec.compute_capability,
                                      .peer_access = spec.peer_access,
                                      .cpu = spec.cpu}));
  }
  if (spec.layout != nullptr) {
    AddLaidOut(server, spec, gpus, nics);
    return;
  }
  for (uint32_t plane = 0; plane < spec.nvlink_lanes.size(); ++plane) {
    const DeviceId nvswitch =
        add(DeviceKind::kNvSwitch, "nvswitch", plane, spec.nvswitch_latency_ps);
    const uint32_t lanes = spec.nvlink_lanes[plane];
    for (const DeviceId gpu : gpus) {
      AddCable(gpu, nvswitch,
               {.tier = Tier::kNvlink,
                .rate_bps = lanes * spec.nvlink_lane_rate_bps,
                .propagation_ps = spec.nvlink_delay_ps,
                .lanes = lanes});
    }
  }
  for (const ServerLayout::NvlinkBundle& bundle : spec.nvlink_mesh) {
    if (bundle.gpu >= spec.gpus || bundle.peer >= spec.gpus) continue;
    AddCable(gpus[bundle.gpu], gpus[bundle.peer],
             {.tier = Tier::kNvlink,
              .rate_bps = bundle.lanes * spec.nvlink_lane_rate_bps,
              .propagation_ps = spec.nvlink_delay_ps,
              .lanes = bundle.lanes});
  }
  if (spec.pcie) {
    const size_t first_nic = nics.size();
    for (uint32_t i = 0; i < spec.nic_count(); ++i) {
      nics.push_back({.device = add(DeviceKind::kNic, "nic", i, 0),
                      .server = server,
                      .index = i,
                      .rate_bps = spec.nic_rate_bps,
                      .ports = spec.nic_ports});
    }
    AddPcie(server, spec, gpus, std::span(nics).subspan(first_nic));
    return;
  }
  const CableSpec host = {
      .tier = Tier::kHost, .rate_bps = spec.host_rate_bps, .propagation_ps = spec.host_delay_ps};
  const size_t first_nic = nics.size();
  for (uint32_t i = 0; i < spec.nic_count(); ++i) {
    nics.push_back({.device = add(DeviceKind::kNic, "nic", i, 0),
                    .server = server,
                    .index = i,
                    .rate_bps = spec.nic_rate_bps,
                    .ports = spec.nic_ports});
    AddCable(gpus[i % spec.gpus], nics.back().device, host);
  }
  for (uint32_t i = spec.nic_count(); i < spec.gpus; ++i) {
    AddCable(gpus[i], nics[first_nic + i % spec.nic_count()].device, host);
  }
}

void FabricBuilder::AddLaidOut(ServerIndex server, const ServerSpec& spec,
                               const std::vector<DeviceId>& gpus, std::vector<BuiltNic>& nics) {
  const ServerLayout& layout = *spec.layout;
  const auto add = [&](DeviceKind kind, const char* noun, uint32_t index, int64_t latency_ps) {
    return AddPart(server, kind, noun, index, latency_ps);
  };
  std::vector<DeviceId> nvswitches;
  for (uint32_t i = 0; i < layout.nvswitches; ++i) {
    nvswitches.push_back(add(DeviceKind::kNvSwitch, "nvswitch", i, spec.nvswitch_latency_ps));
  }
  for (const ServerLayout::NvlinkBundle& bundle : layout.nvlinks) {
    AddCable(gpus[bundle.gpu], bundle.is_to_gpu ? gpus[bundle.peer] : nvswitches[bundle.peer],
             {.tier = Tier::kNvlink,
              .rate_bps = bundle.lanes * layout.nvlink_lane_rate_bps,
              .propagation_ps = spec.nvlink_delay_ps,
              .lanes = bundle.lanes});
  }
  const size_t first_nic = nics.size();
  for (uint32_t i = 0; i < layout.nic_rates_bps.size(); ++i) {
    nics.push_back({.device = add(DeviceKind::kNic, "nic", i, 0),
                    .server = server,
                    .index = i,
                    .rate_bps = layout.nic_rates_bps[i]});
  }
  for (const ServerLayout::HostPath& path : layout.host_paths) {
    AddCable(
        gpus[path.gpu], nics[first_nic + path.nic].device,
        {.tier = Tier::kHost, .rate_bps = path.rate_bps, .propagation_ps = spec.host_delay_ps});
  }
  AddPcie(server, spec, gpus, std::span(nics).subspan(first_nic));
}

void FabricBuilder::AddPcie(ServerIndex server, const ServerSpec& spec,
                            const std::vector<DeviceId>& gpus, std::span<const BuiltNic> nics) {
  std::vector<DeviceId> switches;
  std::vector<DeviceId> bridges;
  const auto device = [&](const ServerLayout::PcieDevice& named) {
    switch (named.kind) {
      case ServerLayout::PcieKind::kGpu:
        return gpus[named.index];
      case ServerLayout::PcieKind::kNic:
        return nics[named.index].device;
      case ServerLayout::PcieKind::kSwitch:
        while (switches.size() <= named.index) {
          switches.push_back(AddPart(server, DeviceKind::kPcieSwitch, "pcieswitch",
                                     static_cast<uint32_t>(switches.size()),
                                     spec.pcie_switch_latency_ps));
        }
        return switches[named.index];
      case ServerLayout::PcieKind::kHostBridge:
        while (bridges.size() <= named.index) {
          bridges.push_back(AddPart(server, DeviceKind::kHostBridge, "hostbridge",
                                    static_cast<uint32_t>(bridges.size()),
                                    spec.host_bridge_latency_ps));
        }
        return bridges[named.index];
    }
    SIM_CHECK(false, "a PCIe device of no kind");
    return gpus.front();
  };
  for (const ServerLayout::PcieLink& link : PcieLinksOf(spec)) {
    const DeviceId from = device(link.from);
    const DeviceId to = device(link.to);
    AddCable(from, to,
             {.tier = Tier::kHost, .rate_bps = link.rate_bps, .propagation_ps = link.delay_ps});
  }
}

DeviceId FabricBuilder::AddPart(ServerIndex server, DeviceKind kind, const char* noun,
                                uint32_t index, int64_t latency_ps) {
  return fabric_.AddDevice({.name = fmt::format("server{}/{}{}", server, noun, index),
                            .kind = kind,
                            .server = server,
                            .local_index = static_cast<int32_t>(index),
                            .forwarding_latency_ps = latency_ps,
                            .coordinates = {}});
}

DeviceId FabricBuilder::AddSwitch(std::string name, std::vector<uint16_t> coordinates) {
  return fabric_.AddDevice({.name = std::move(name),
                            .kind = DeviceKind::kSwitch,
                            .forwarding_latency_ps = network_.switch_latency_ps,
                            .coordinates = std::move(coordinates)});
}

void FabricBuilder::Join(DeviceId a, DeviceId b, Tier tier, const LinkSpec& links) {
  for (uint32_t i = 0; i < links.count; ++i) {
    AddCable(a, b, {.tier = tier, .rate_bps = links.rate_bps, .propagation_ps = links.delay_ps});
  }
}

void FabricBuilder::Attach(const BuiltNic& nic, DeviceId leaf) {
  for (uint32_t port = 0; port < nic.ports; ++port) {
    AddCable(nic.device, leaf,
             {.tier = Tier::kNicLeaf,
              .rate_bps = nic.rate_bps,
              .propagation_ps = network_.nic_delay_ps});
  }
}

void FabricBuilder::AttachInOrder(std::span<const BuiltNic> nics,
                                  std::span<const DeviceId> switches, uint32_t nics_per_switch) {
  SIM_CHECK(DivideUp(nics.size(), nics_per_switch) <= switches.size(), "more NICs than ports");
  for (size_t i = 0; i < nics.size(); ++i) Attach(nics[i], switches[i / nics_per_switch]);
}

void FabricBuilder::AddCable(DeviceId a, DeviceId b, CableSpec cable) {
  const uint64_t draw = Mix64(fabric_.cables().size());
  cable.propagation_ps +=
      static_cast<int64_t>(ScaleTo(draw, static_cast<uint64_t>(network_.delay_spread_ps)));
  fabric_.AddCable(a, b, cable);
}

}  // namespace railyard
