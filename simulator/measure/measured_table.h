// SPDX-License-Identifier: GPL-2.0-only
// Reads a table of measured collective times, one row each, as comma-separated values with the
// columns
//   source_id,collective,nodes,gpus_per_node,gpu,nic_gbps,nccl_version,algo_hint,
//   bytes,time_us,algbw_GBps,busbw_GBps,notes
// (RFC 4180; fields may be quoted).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct MeasuredRow {
  std::string source_id;
  std::string collective;  // as nccl-tests names it: "all_reduce"
  uint32_t nodes = 0;
  uint32_t gpus_per_node = 0;
  std::string gpu;           // "H100-SXM5-80GB"
  std::string nics;          // per node: "8x400 IB"
  std::string nccl_version;  // "2.29.2", "unknown"
  std::string algorithm_hint;
  uint64_t bytes = 0;  // nccl-tests' size
  double time_us = 0;
  std::string notes;
  int line = 0;
};

// Returns the rows. Every mistake is a finding at its line; rows that have one are left out.
std::vector<MeasuredRow> ReadMeasuredTable(const std::string& path, Diagnostics& diagnostics);

}  // namespace railyard
