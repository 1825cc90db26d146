// SPDX-License-Identifier: GPL-2.0-only
// Is the second pass of the log reader. It finds the handles of different processes that are one
// communicator, and the global rank of each process (and device).
//
// The largest communicator by nranks is the job, and the rank in it is the global rank, unless a
// rank map or RCCL's globalrank gives it. Handles are joined by commId; splits without one by
// parent, split and color; all others by size if there is only one possibility. Each inference is a
// sentence in ImportReport::assumed.
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

// Describes the part of a process that drives one GPU: the process itself, or one of its devices.
struct Endpoint {
  uint32_t process = 0;
  std::optional<uint32_t> device;
  std::optional<uint32_t> rank;  // global
};

struct JoinedCommunicator {
  std::string name;
  uint32_t size = 0;
  std::vector<uint32_t> handles;                // of the ranks in the log
  std::map<uint32_t, uint32_t> handle_of_rank;  // by communicator rank
  std::vector<uint32_t> ranks;  // global, by communicator rank; empty if a missing one is unknown
  uint32_t family = 0;
};

// Describes communicators that were created alike (siblings of one split, or each process's k-th of
// a size): every rank is in at most one of them. With a stride, global rank g has the communicator
// rank (g / stride) mod size.
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
  // True if some processes were given arbitrary ranks, because their assignment does not matter
  // (ranks_are_symmetric).
  bool has_arbitrary_ranks = false;
  // The `--rank-map` options that would assign ranks to processes of unknown rank, in the order of
  // their names; empty if all ranks are known.
  std::string rank_map_to_type;
  std::vector<JoinedCommunicator> communicators;
  std::vector<CommunicatorFamily> families;
  // The endpoint of each handle.
  std::vector<uint32_t> endpoint_of;
  std::vector<std::optional<uint32_t>> communicator_of;
  std::vector<std::optional<uint32_t>> communicator_rank_of;
  std::vector<std::optional<UnplacedHandle>> unplaced;
};

Placement PlaceRanks(const LoggedCalls& logged, const NcclLogOptions& options, ImportReport& report,
                     Diagnostics& diagnostics);

}  // namespace railyard
