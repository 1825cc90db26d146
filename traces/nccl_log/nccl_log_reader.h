// SPDX-License-Identifier: GPL-2.0-only
// Reads what NCCL (2.3 to 2.30) and RCCL print with NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,COLL,
// TUNING into a trace. The calls come from ncclEnqueueCheck's line (src/enqueue.cc), the
// communicators from the lines of src/init.cc.
//
// Such a log holds neither times nor group boundaries: calls are in enqueue order per process and
// communicator, compute gaps are 0, and grouped Send/Recv are told from equal opCounts in a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

struct NcclLogOptions {
  // What happens where the log does not hold every rank of a communicator.
  enum class MissingRanks : uint8_t {
    kRefuse,       // an error
    kReconstruct,  // the missing ranks made the same calls as those present
  };
  // Which global rank a process is. Needed where no Init line tells; else it must agree with them.
  struct RankOf {
    std::string host = {};  // as in the log's prefix
    uint64_t pid = 0;
    std::optional<uint32_t> device =
        {};  // [N] of the prefix; needed where one process drives several
    uint32_t rank = 0;
    SourceLocation where = {};  // of this entry, for findings; the first log if left empty
  };

  std::vector<std::string> files = {};  // in order; a process's lines may be spread over several
  MissingRanks missing_ranks = MissingRanks::kRefuse;
  std::vector<RankOf> rank_map = {};
};

struct NcclLogImport {
  std::optional<Trace> trace;  // absent after an error, or if no call could be imported
  ImportReport report;         // always complete
};

// Reads all files to their last line. Lines are read up to kNcclLogLineBytesMax; memory grows with
// the calls and communicators kept, not with the files. A missing file is a finding, one that
// cannot be read an EnvironmentError.
NcclLogImport ReadNcclLogs(const NcclLogOptions& options, Diagnostics& diagnostics);

inline constexpr size_t kNcclLogLineBytesMax = size_t{1} << 20;

}  // namespace railyard
