// SPDX-License-Identifier: GPL-2.0-only
// Makes the trace of the calls that were not dropped. A communicator is added at its first use.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

class LogTraceBuilder {
 public:
  // Both must outlive this. `report` receives the rings and trees that the lines do not give.
  LogTraceBuilder(const PlacedCalls& calls, ImportReport& report);

  // Adds every call that is not dropped; `group_of` is by call, 0: no group.
  void AddCalls(const std::vector<uint32_t>& group_of);
  // Returns the trace's index of a communicator of the placement.
  uint32_t CommunicatorOf(uint32_t communicator);
  std::vector<TraceOperation>& OperationsOf(uint32_t rank) { return trace_.operations[rank]; }
  Trace Take() && { return std::move(trace_); }

 private:
  // Adds the communicator's rings and trees if the lines of its ranks give them completely.
  void StateGraph(const JoinedCommunicator& communicator, TraceCommunicator& stated);

  const PlacedCalls& calls_;
  ImportReport& report_;
  Trace trace_;
  std::map<uint32_t, uint32_t> communicator_of_;  // in the trace, by that of the placement
};

}  // namespace railyard
