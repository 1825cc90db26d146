// SPDX-License-Identifier: GPL-2.0-only
// Holds the calls of a log by rank, and the ranks without calls. The passes of the assembly
// (nccl_log_assembly.h) drop calls from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/trace/import_report.h"

namespace railyard {

class PlacedCalls {
 public:
  // Drops the calls whose rank is not known. All three arguments must outlive this.
  PlacedCalls(LoggedCalls& logged, const Placement& placement, ImportReport& report);

  // Drops the calls on communicators whose ranks are not known.
  void DropThoseWithUnknownMembers();
  void Drop(uint32_t index, CallDropReason reason, std::string detail);
  bool AllAreDropped() const;

  // Returns the number of all calls of the log, including those that were dropped.
  uint32_t size() const { return static_cast<uint32_t>(logged_.calls.size()); }
  LoggedCall& operator[](uint32_t index) { return logged_.calls[index]; }
  const LoggedCall& operator[](uint32_t index) const { return logged_.calls[index]; }
  // Returns the placed calls of each global rank, in order; later passes may have dropped some of
  // them.
  const std::vector<std::vector<uint32_t>>& by_rank() const { return by_rank_; }
  // Returns the ranks without a process and those whose process made no placed call, ascending.
  const std::vector<uint32_t>& missing() const { return missing_; }

  int time_decimals() const { return logged_.time_decimals; }
  uint64_t calls_with_other_time() const { return logged_.calls_with_other_time; }
  const Placement& placement() const { return placement_; }
  const CommunicatorHandle& Handle(uint32_t handle) const { return logged_.handles[handle]; }
  GlobalRank RankOfHandle(uint32_t handle) const;
  // Returns the communicator of a placed call as an index into those of the placement.
  uint32_t CommunicatorOf(const LoggedCall& call) const;
  uint32_t CommunicatorRankOf(const LoggedCall& call) const;

  // Returns the location of the call for findings.
  SourceLocation PlaceOf(const LoggedCall& call) const;
  std::string PlaceText(const LoggedCall& call) const;
  SourceLocation FirstFile() const;

 private:
  void FindMissing();

  LoggedCalls& logged_;
  const Placement& placement_;
  ImportReport& report_;
  std::vector<std::vector<uint32_t>> by_rank_;
  std::vector<uint32_t> missing_;
};

// Returns true for Send and Recv.
inline bool IsP2p(const LoggedCall& call) { return IsSendOrRecv(call.kind); }

}  // namespace railyard
