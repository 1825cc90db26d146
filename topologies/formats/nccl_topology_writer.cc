// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/nccl_topology_writer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "topologies/graph/nvlink.h"
#include "topologies/graph/pcie.h"

namespace railyard {
namespace {

std::string BusId(uint32_t number) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", number >> 13, number >> 5 & 0xff, number & 0x1f);
}

class Writer {
 public:
  Writer(const FabricGraph& fabric, ServerIndex server) : fabric_(fabric), server_(server) {}

  std::string Write(std::string& text) {
    Number();
    const CpuVendor cpu = gpus_.empty() ? CpuVendor::kUnknown : fabric_.device(gpus_.front()).cpu;
    text_ =
        fmt::format("<system version=\"1\">\n  <cpu numaid=\"0\" {}>\n", CpuAttributesOfXml(cpu));
    std::vector<bool> is_written(fabric_.device_count());
    for (const DeviceId gpu : gpus_) {
      const auto nic = fabric_.NicOfGpu(gpu);
      if (!nic) return fmt::format("{} has no NIC", fabric_.device(gpu).name);
      if (!fabric_.FindLink(gpu, *nic)) {
        return fmt::format("{} meets its NIC over PCIe switches or host bridges",
                           fabric_.device(gpu).name);
      }
      if (is_written[*nic]) continue;
      is_written[*nic] = true;
      if (std::string why = WriteSwitch(*nic); !why.empty()) return why;
    }
    text_ += "  </cpu>\n</system>\n";
    text = std::move(text_);
    return {};
  }

 private:
  void Number() {
    uint32_t next = 0;
    for (const DeviceKind kind : {DeviceKind::kGpu, DeviceKind::kNvSwitch, DeviceKind::kNic}) {
      for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
        const Device& device = fabric_.device(id);
        if (device.kind != kind || device.server != server_) continue;
        busid_.emplace(id, BusId(next++));
        if (kind == DeviceKind::kGpu) gpus_.push_back(id);
      }
    }
    next_bridge_ = next;
  }

  // A PCIe switch with a NIC and the GPUs that use it.
  std::string WriteSwitch(DeviceId nic) {
    // The link is wide enough for all devices below it.
    text_ += fmt::format(
        "    <pci busid=\"{}\" class=\"0x060400\" link_speed=\"64.0 GT/s PCIe\" "
        "link_width=\"32\">\n",
        BusId(next_bridge_++));
    uint64_t nic_path_bps = 0;
    uint64_t port_bps = 0;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(nic, fabric_.graph()))) {
      const LinkProperties& link = fabric_.graph()[edge];
      if (link.tier == Tier::kHost) {
        nic_path_bps = std::max(nic_path_bps, link.rate_bps);
      } else if (port_bps != 0 && port_bps != link.rate_bps) {
        return fmt::format("{} has ports of different rates", fabric_.device(nic).name);
      } else {
        port_bps = link.rate_bps;
      }
    }
    if (port_bps == 0) {
      return fmt::format("{} has no cable to the network, so its rate is not known",
                         fabric_.device(nic).name);
    }
    for (const DeviceId gpu : gpus_) {
      if (fabric_.NicOfGpu(gpu) != nic) continue;
      if (std::string why = WriteGpu(gpu, nic); !why.empty()) return why;
    }
    const auto link = FindPcieLink(nic_path_bps);
    if (!link) {
      return fmt::format("no PCIe link is as fast as {} to {}", FormatRate(nic_path_bps),
                         fabric_.device(nic).name);
    }
    const std::string& name = fabric_.device(nic).name;
    text_ += fmt::format(
        "      <pci busid=\"{}\" class=\"0x020700\" link_speed=\"{}\" link_width=\"{}\">\n"
        "        <nic>\n          <net name=\"{}\" dev=\"{}\" speed=\"{}\" port=\"1\" gdr=\"1\"/>\n"
        "        </nic>\n      </pci>\n    </pci>\n",
        busid_.at(nic), link->first, link->second, name.substr(name.find('/') + 1),
        fabric_.device(nic).local_index, port_bps / 1'000'000);
    return {};
  }

  std::string WriteGpu(DeviceId gpu, DeviceId nic) {
    const uint64_t host_bps = fabric_.link(fabric_.FindLink(gpu, nic).value()).rate_bps;
    const auto link = FindPcieLink(host_bps);
    if (!link) {
      return fmt::format("no PCIe link is as fast as {} of {}", FormatRate(host_bps),
                         fabric_.device(gpu).name);
    }
    std::string nvlinks;
    const uint32_t known_sm = fabric_.device(gpu).compute_capability;
    uint32_t sm = known_sm == 0 ? 90 : known_sm;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu, fabric_.graph()))) {
      const LinkProperties& nvlink = fabric_.graph()[edge];
      if (nvlink.tier != Tier::kNvlink) continue;
      const auto peer = static_cast<DeviceId>(boost::target(edge, fabric_.graph()));
      const auto rate = std::find_if(kNvlinkLaneRates.rbegin(), kNvlinkLaneRates.rend(),
                                     [&](const NvlinkLaneRate& known) {
                                       return known.rate_bps == nvlink.rate_bps / nvlink.lanes;
                                     });
      if (rate == kNvlinkLaneRates.rend() || !busid_.contains(peer)) {
        return fmt::format("no GPU has NVLinks of {}", FormatRate(nvlink.rate_bps / nvlink.lanes));
      }
      if (known_sm == 0) sm = rate->sm;
      const bool is_gpu = fabric_.device(peer).kind == DeviceKind::kGpu;
      nvlinks += fmt::format("          <nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n",
                             busid_.at(peer), nvlink.lanes, is_gpu ? "0x030200" : kNvSwitchClass);
    }
    const int32_t index = fabric_.device(gpu).local_index;
    text_ += fmt::format(
        "      <pci busid=\"{}\" class=\"0x030200\" link_speed=\"{}\" link_width=\"{}\">\n"
        "        <gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">\n{}        </gpu>\n"
        "      </pci>\n",
        busid_.at(gpu), link->first, link->second, index, sm, index, nvlinks);
    return {};
  }

  const FabricGraph& fabric_;
  const ServerIndex server_;
  std::vector<DeviceId> gpus_;
  std::map<DeviceId, std::string> busid_;
  uint32_t next_bridge_ = 0;
  std::string text_;
};

}  // namespace

std::string ToNcclTopology(const FabricGraph& fabric, ServerIndex server, std::string& text) {
  return Writer(fabric, server).Write(text);
}

}  // namespace railyard
