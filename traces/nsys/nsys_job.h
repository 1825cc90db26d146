// SPDX-License-Identifier: GPL-2.0-only
// Combines NCCL's ranges of several processes into a job: it finds the rank of each process, the
// ranks of each communicator, and the calls that can be imported.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nsys/nsys_export.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

class NsysJob {
 public:
  explicit NsysJob(ImportReport& report) : report_(report) {}

  // Adds a range of report_.files[file]. Ranges of a file must be added in the order of their
  // starts.
  void Add(NsysRange&& range, uint32_t file);
  // Returns nullopt if no call can be imported, or after an error.
  std::optional<Trace> Take(Diagnostics& diagnostics);

 private:
  using ProcessId = std::pair<uint32_t, uint64_t>;  // file, and id in it
  struct Call {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    uint32_t file = 0;
    uint32_t group = 0;  // of ncclGroupStart; 0 for none
    NsysRange range;
  };
  struct Process {
    std::vector<Call> calls;
    std::map<uint64_t, uint32_t> depth_of;  // depth of open groups, by thread
    std::map<uint64_t, uint32_t> group_of;  // number of the open group, by thread
    uint32_t groups = 0;
  };
  struct Communicator {
    std::map<uint32_t, ProcessId> process_of;  // by communicator rank
    uint32_t size = 0;
    std::optional<uint32_t> index;  // in the trace
  };

  // Returns false if the processes' ranks are not known.
  bool NumberProcesses();
  void AddCalls(const ProcessId& id, const Process& process, Trace& trace);
  std::optional<CallDropReason> Fill(const ProcessId& id, const Call& call,
                                     TraceOperation& operation, Trace& trace);

  ImportReport& report_;
  std::map<ProcessId, Process> processes_;
  std::map<uint64_t, Communicator> communicators_;  // by id
  std::map<ProcessId, uint32_t> rank_of_;           // global
};

}  // namespace railyard
