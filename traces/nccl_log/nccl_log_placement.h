// SPDX-License-Identifier: GPL-2.0-only
// Second pass of the log reader: which handles of different processes are one communicator, and
// which global rank each process (and device) is.
//
// The largest communicator by nranks is the job, and a rank in it the global rank, unless a rank
// map or RCCL's globalrank says so. Handles are joined by commId, splits without one by parent,
// split and color, all others by size where only one reading is possible. Whatever was not read but
// concluded is a sentence in ImportReport::assumed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/trace/import_report.h"

namespace railyard {

// One GPU's worth of a process: the process itself, or one of the devices it drives.
struct Endpoint {
  uint32_t process = 0;
  std::optional<uint32_t> device;
  std::optional<uint32_t> rank;  // global
};

struct JoinedCommunicator {
  std::string name;
  uint32_t size = 0;
  std::vector<uint32_t> handles;                // of the ranks the log holds
  std::map<uint32_t, uint32_t> handle_of_rank;  // by communicator rank
  std::vector<uint32_t>
      ranks;  // global, by communicator rank; empty where a missing one is unknown
  uint32_t family = 0;
};

// Communicators made alike (siblings of one split, or each process's k-th of a size): every rank is
// in at most one of them. With a stride, rank g has communicator rank (g / stride) mod size.
struct CommunicatorFamily {
  uint32_t size = 0;
  std::optional<uint32_t> stride;
  std::vector<uint32_t> communicators;
};

struct UnplacedHandle {
  CallDropReason reason = CallDropReason::kUnknownRank;
  std::string detail;
};

struct Placement {
  uint32_t rank_count = 0;
  std::vector<Endpoint> endpoints;
  std::vector<JoinedCommunicator> communicators;
  std::vector<CommunicatorFamily> families;
  // By handle.
  std::vector<uint32_t> endpoint_of;
  std::vector<std::optional<uint32_t>> communicator_of;
  std::vector<std::optional<uint32_t>> communicator_rank_of;
  std::vector<std::optional<UnplacedHandle>> unplaced;
};

Placement PlaceRanks(const LoggedCalls& logged, const NcclLogOptions& options, ImportReport& report,
                     Diagnostics& diagnostics);

}  // namespace railyard
