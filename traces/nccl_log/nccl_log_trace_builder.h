// SPDX-License-Identifier: GPL-2.0-only
// Makes the trace of the calls that were not dropped. A communicator is added at its first use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

class LogTraceBuilder {
 public:
  // Both must outlive this. `report` gets a note on the rings and trees that the lines do not give.
  LogTraceBuilder(const PlacedCalls& calls, ImportReport& report);

  // Adds every call that is not dropped; `group_of` is by call; 0 means no group. With times, the
  // host's time between time stamps is computation on a separate stream, for which calls wait.
  void AddCalls(const std::vector<uint32_t>& group_of, bool with_times);
  // Returns the trace's index of a communicator of the placement.
  uint32_t CommunicatorOf(uint32_t communicator);
  std::vector<TraceOperation>& OperationsOf(GlobalRank rank) { return trace_.operations[rank]; }
  Trace Take() && { return std::move(trace_); }

 private:
  // Holds what is known of a rank while its calls are added.
  struct HostClock {
    std::optional<int64_t> last_ns;
    uint32_t last_gap = 0;    // one more than the operation of the last gap; 0 if none yet
    uint32_t last_group = 0;  // of the previous call
  };
  // Returns the stream's number within its rank, in the order of first use.
  uint32_t StreamOf(GlobalRank rank, uint64_t stream);
  // Adds the time since the rank's previous call, if it is not 0, and makes the call wait for it.
  void AddGap(const LoggedCall& call, GlobalRank rank, TraceOperation& operation);
  void NoteTimes(uint64_t calls_added);

  // Adds the communicator's rings and trees if the lines of its ranks give them completely.
  void StateGraph(const JoinedCommunicator& communicator, TraceCommunicator& stated);

  const PlacedCalls& calls_;
  ImportReport& report_;
  Trace trace_;
  std::vector<std::unordered_map<uint64_t, uint32_t>> streams_;  // by rank
  std::vector<HostClock> clocks_;                                // by rank
  uint64_t calls_with_time_ = 0;
  uint64_t calls_set_back_ = 0;                   // with an earlier time than the previous call
  std::map<uint32_t, uint32_t> communicator_of_;  // index in the trace, by index in the placement
};

}  // namespace railyard
