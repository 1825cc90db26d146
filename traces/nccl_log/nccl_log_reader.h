// SPDX-License-Identifier: GPL-2.0-only
// Reads the output of NCCL (2.3 to 2.30) and RCCL with NCCL_DEBUG=INFO,
// NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING into a trace. The calls come from ncclEnqueueCheck's line
// (src/enqueue.cc), the communicators from the lines of src/init.cc.
//
// Such a log has no group boundaries: calls are in enqueue order per process and communicator, and
// grouped Send/Recv are recognized by equal opCounts in consecutive lines. If lines have time
// stamps, the time between calls is at least that on the host.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/trace_reader.h"

namespace railyard {

struct NcclLogOptions {
  using MissingRanks = railyard::MissingRanks;
  using RankOf = ProcessRank;

  std::vector<std::string> files = {};  // in order; the lines of a process may be in several
  MissingRanks missing_ranks = MissingRanks::kRefuse;
  // Required if no Init line gives the rank of a process; otherwise it must agree with those lines.
  std::vector<RankOf> rank_map = {};
  // Processes of unknown rank make the same calls, so their assignment to ranks does not matter.
  bool ranks_are_symmetric = false;
  bool ignore_times = false;  // calls follow each other without gaps
};

// Reads all files to their last line. Lines are read up to kNcclLogLineBytesMax; memory grows with
// the calls and communicators kept, not with the files. A missing file is a finding; a file that
// cannot be read throws an EnvironmentError.
TraceImport ReadNcclLogs(const NcclLogOptions& options, Diagnostics& diagnostics);

extern const TraceReader kNcclLogReader;  // "nccl-log"

inline constexpr size_t kNcclLogLineBytesMax = size_t{1} << 20;

}  // namespace railyard
