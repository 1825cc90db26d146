// SPDX-License-Identifier: GPL-2.0-only
// Is the first pass of the log reader. It reads every line once and collects the processes, the
// communicators that each of them created or used, and the calls in the order in which they were
// logged. It matches nothing across processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/container/deque.hpp>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/import_report.h"
#include "traces/trace/logged_graph.h"
#include "traces/trace/trace.h"

namespace railyard {

// Describes a communicator as one process (and device) sees it: a pointer, from the line that
// created it to the line that destroyed it or to the pointer's next use. Every rank has a separate
// handle.
struct CommunicatorHandle {
  uint32_t process = 0;
  uint64_t pointer = 0;
  uint32_t rank_count = 0;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> init_device;  // from the Init line
  std::optional<uint32_t> call_device;  // the first call's [DEV]
  std::string bus_id;                   // of the GPU; empty if not printed
  std::string comm_id;
  std::optional<uint32_t> parent;  // handle of the same process
  uint64_t split_number = 0;       // index of this split among the parent's splits
  int64_t color = 0;
  uint32_t split_count = 0;  // splits of this communicator so far
  bool has_calls = false;
  bool complete = false;  // its Init COMPLETE was seen
  bool destroyed = false;
  LoggedGraph graph{};  // from its rank's lines
};

struct LoggedCall {
  uint32_t handle = 0;
  uint32_t file = 0;
  uint64_t line = 0;
  uint64_t op_count = 0;
  uint64_t count = 0;
  uint64_t stream = 0;
  uint32_t root_or_peer = 0;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Datatype datatype = Datatype::kFloat32;
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  bool in_place = false;  // as in TraceOperation
  bool dropped = false;
  std::optional<int64_t> time_ns{};  // from the line's time stamp, by its host's clock
};

struct TuningLine {
  size_t calls_before = 0;  // index of the first call logged after it
  std::optional<CollectiveKind> kind;
  uint64_t bytes = 0;
  bool bytes_are_per_rank = false;
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
};

struct LogProcess {
  std::string host;
  uint64_t pid = 0;
  uint32_t first_file = 0;
  uint64_t first_line = 0;
  std::vector<uint32_t> handles;
  // The ranks by nranks and device as `Init timings` lines state them; nullopt if the lines differ.
  std::map<std::pair<uint32_t, std::optional<uint32_t>>, std::optional<uint32_t>> timings;
  std::vector<TuningLine> tuning;
};

// Holds millions of calls: a vector would copy them whenever it grows, and a block of the standard
// library's deque holds only seven.
using CallList = boost::container::deque<
    LoggedCall, void, boost::container::deque_options<boost::container::block_size<4'096>>::type>;

struct LoggedCalls {
  std::vector<LogProcess> processes;
  std::vector<CommunicatorHandle> handles;
  CallList calls;                      // of lines without errors, in the order of lines
  int time_decimals = 0;               // largest number in the time stamps
  uint64_t calls_with_other_time = 0;  // with a time stamp in a format that is not read
};

// Reads the files to their ends. `report` counts the lines, the calls seen, and the calls dropped
// because of errors in their lines.
LoggedCalls ReadLoggedCalls(const std::vector<std::string>& files, ImportReport& report,
                            Diagnostics& diagnostics);

// Marks the call as dropped and reports it.
void DropCall(LoggedCall& call, CallDropReason reason, std::string detail, ImportReport& report);

}  // namespace railyard
