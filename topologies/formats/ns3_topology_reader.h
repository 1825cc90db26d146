// SPDX-License-Identifier: GPL-2.0-only
// Reads the topology.txt of the RDMA simulators on ns-3. HPCC's form, which ASTRA-sim's ns-3 back
// end reads as well, is
//
//   NODES SWITCHES LINKS
//   id of each switch, all others are hosts
//   SOURCE TARGET RATE DELAY ERROR_RATE         a line per link
//
// In SimAI's form hosts are GPUs and the first switches are the servers' NVSwitches:
//
//   NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE
//   id of each NVSwitch, then of each switch
//   SOURCE TARGET RATE DELAY ERROR_RATE
//
// (alibaba-edu/High-Precision-Congestion-Control, simulation/mix/fat.txt; aliyun/SimAI,
// gen_Topo_Template.py.) Text after the last link is ignored, as those programs do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

enum class Ns3NodeKind : uint8_t { kHost, kNvSwitch, kSwitch };

struct Ns3Node {
  Ns3NodeKind kind = Ns3NodeKind::kHost;
  int line = 1;  // for findings: that of a switch's id, or of a host's first link
};

struct Ns3Link {
  uint32_t source = 0;  // into Ns3Topology::nodes
  uint32_t target = 0;
  uint64_t rate_bps = 0;
  int64_t delay_ps = 0;
  int line = 0;
};

struct Ns3Topology {
  bool is_simai = false;
  uint32_t gpus_per_server = 1;
  std::vector<Ns3Node> nodes;  // by id
  std::vector<Ns3Link> links;
};

// Returns nullopt after an error; every mistake is a finding at its word. The numbers of nodes and
// links are checked against the limits before memory is allocated for them.
std::optional<Ns3Topology> ReadNs3Topology(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
