// SPDX-License-Identifier: GPL-2.0-only
// Holds the contents of NCCL's topology XML (topologies/formats/nccl_topology_loader.h) as parsed,
// before any interpretation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topologies/formats/line_findings.h"
#include "topologies/graph/cpu_vendor.h"

namespace railyard {

struct NcclTopologyTree {
  static constexpr uint32_t kNone = UINT32_MAX;  // no node, no rank

  // Describes a device of the PCIe tree. CPUs are its roots and have no link to a parent.
  struct Node {
    uint32_t parent = kNone;
    uint32_t depth = 0;
    uint64_t link_bps = UINT64_MAX;  // to the parent
  };
  struct Nvlink {
    std::string target;
    std::string target_class;
    uint32_t count = 0;
    int line = 0;
  };
  struct Gpu {
    uint32_t node = 0;
    std::string busid;
    uint32_t rank = kNone;
    uint32_t sm = 0;
    int line = 0;
    std::vector<Nvlink> nvlinks;
  };
  struct Nic {
    uint32_t node = 0;
    std::string name;
    uint64_t rate_bps = 0;
  };

  std::vector<Node> nodes{};
  std::vector<Gpu> gpus{};  // at least one
  std::vector<Nic> nics{};
  CpuVendor cpu = CpuVendor::kUnknown;  // of the first CPU, as in NCCL (ncclTopoCpuType)
};

// Returns nullopt after an error; every mistake is a finding at its line.
std::optional<NcclTopologyTree> ReadNcclTopologyTree(const std::string& path,
                                                     LineFindings& findings);

}  // namespace railyard
