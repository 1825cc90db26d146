// SPDX-License-Identifier: GPL-2.0-only
// Describes a server as every generator builds it: one NVLink island of any size and its NICs.
//
//   gpu0..gpuG-1 ──NVLINK── nvswitch0..S-1      every GPU to every NVSwitch
//   gpu<i> ──HOST── nic<i mod N>                with more NICs than GPUs also nic<j> to gpu<j mod
//   G>
//
// With a PCIe tree it is
//
//   gpu<i>, nic<j> ──HOST── pcieswitch0..P-1 ──HOST── hostbridge0..B-1 ──HOST── each other
//
// and GPUs communicate with each other over the tree too. In servers without such a tree it is not
// modelled that a GPU and its NIC share a PCIe switch with other devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/units/units.h"
#include "topologies/graph/cpu_vendor.h"
#include "topologies/graph/server_layout.h"
#include "topologies/graph/spec_check.h"

namespace railyard {

// Describes a number of equal servers. The defaults are those of a DGX H100:
// topologies/platforms/dgx-h100.textproto has the sources, and a test compares the two.
struct ServerSpec {
  uint32_t count = 1;
  uint32_t gpus = 8;
  std::optional<uint32_t> nics{};  // if absent, one per GPU

  // NVLinks of each GPU, by NVSwitch; empty without NVSwitches.
  std::vector<uint32_t> nvlink_lanes = {5, 4, 4, 5};
  // Alternatively, NVLinks from GPU to GPU without NVSwitches; bundles that name GPUs beyond `gpus`
  // are ignored.
  std::vector<ServerLayout::NvlinkBundle> nvlink_mesh{};
  uint64_t nvlink_lane_rate_bps = 200'000'000'000;  // each way
  int64_t nvlink_delay_ps = 200 * kPsPerNs;         // one way
  int64_t nvswitch_latency_ps = 100 * kPsPerNs;

  uint64_t host_rate_bps = 440'000'000'000;  // PCIe, after packet overhead, each way
  int64_t host_delay_ps = 450 * kPsPerNs;    // PCIe and DMA engine, one way; with a tree, per link
  // GPUs are attached in order to the switches or, without switches, to the host bridges; NICs are
  // attached to the host bridges.
  struct PcieTree {
    uint32_t sockets = 1;  // each has a host bridge, cabled to all others
    uint32_t switches_per_socket = 0;
    uint64_t socket_rate_bps = 0;  // of the link between two sockets, each way
    int64_t socket_delay_ps = 0;
    bool operator==(const PcieTree&) const = default;
  };
  std::optional<PcieTree> pcie{};
  // Sources: topologies/platforms/pcie-8x3090.textproto.
  int64_t pcie_switch_latency_ps = 105 * kPsPerNs;
  int64_t host_bridge_latency_ps = 150 * kPsPerNs;
  uint32_t compute_capability = 90;  // as in Device
  bool peer_access = true;
  CpuVendor cpu = CpuVendor::kIntel;
  uint64_t nic_rate_bps = 400'000'000'000;  // of one port
  uint32_t nic_ports = 1;                   // cables from each NIC to its switch

  // The cabling of a server that these numbers cannot describe. If it is set, `gpus`, `nics` and
  // `nic_rate_bps` (the highest) are the layout's, and `nvlink_lanes`, `host_rate_bps` and
  // `nic_ports` are ignored.
  std::shared_ptr<const ServerLayout> layout{};

  uint32_t nic_count() const { return nics.value_or(gpus); }
  bool HasNvlink() const { return !nvlink_lanes.empty() || !nvlink_mesh.empty(); }
  uint64_t LanesOfGpu() const;   // NVLinks of the first GPU of a server
  uint64_t cable_count() const;  // inside one server
};

// Returns the links of a server's PCIe tree, GPUs' and NICs' first; empty without a tree.
std::vector<ServerLayout::PcieLink> PcieLinksOf(const ServerSpec& server);

// Returns a spec of servers with this layout.
ServerSpec ServerOf(ServerLayout layout);

// Holds the fields that the specs of all generators except RailOptimized have in common.
struct NetworkSpec {
  std::string name{};
  std::vector<ServerSpec> servers = {ServerSpec{}};
  // The default is 5 m of cable at 5 ns/m and an assumed 120 ns of RS(544,514) FEC.
  int64_t nic_delay_ps = 145 * kPsPerNs;
  // The default is an assumption between the 130 ns of an InfiniBand HDR switch (NVIDIA QM8700 data
  // sheet) and the 0.5 us and more of deep Ethernet pipelines.
  int64_t switch_latency_ps = 300 * kPsPerNs;
  // Cables differ in length: each cable of any tier is longer by a random delay in [0,
  // delay_spread_ps). It is a hash of the cable's index alone, so it is the same in every run.
  int64_t delay_spread_ps = 0;

  uint64_t server_count() const;
  uint64_t gpu_count() const;
  uint64_t nic_count() const;
  uint64_t nic_port_count() const;
  uint32_t most_nics_per_server() const;
  uint64_t cables_in_servers() const;
};

// Leaves room beyond the four network cards that each GPU of Amazon's p5 has.
inline constexpr uint32_t kMaxNicPorts = 16;

// Adds the problems of the servers and of the common fields to `check`. A generator that counts the
// ports of its switches takes NICs of one port.
void CheckNetwork(const NetworkSpec& network, SpecChecker& check, uint32_t nic_ports_max = 1);

}  // namespace railyard
