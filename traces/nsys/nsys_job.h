// SPDX-License-Identifier: GPL-2.0-only
// Combines NCCL's ranges of several processes into the calls of a job's ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/nsys/nsys_export.h"
#include "traces/reading/captured_job.h"
#include "traces/reading/process_placement.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

class NsysJob {
 public:
  NsysJob(const ImportOptions& options, ImportReport& report)
      : options_(options), report_(report) {}

  // Adds a range of report_.files[file]. Ranges of a file must be added in the order of their
  // starts.
  void Add(NsysRange&& range, uint32_t file);
  // Returns nullopt if no call can be imported, or after an error.
  std::optional<Trace> Take(Diagnostics& diagnostics);

 private:
  using ProcessId = std::pair<uint32_t, uint64_t>;  // file, and id in it
  struct Call {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    uint32_t group = 0;  // of ncclGroupStart; 0 for none
    NsysRange range;
  };
  struct Process {
    std::vector<Call> calls;
    std::map<uint64_t, uint32_t> depth_of;  // depth of open groups, by thread
    std::map<uint64_t, uint32_t> group_of;  // number of the open group, by thread
    uint32_t groups = 0;
    // By communicator: the ranks as which threads joined it.
    std::map<std::string, std::map<uint64_t, std::set<uint32_t>>> ranks_of;
  };
  struct Drop {
    CallDropReason reason = CallDropReason::kUnknownRank;
    std::string detail;
  };

  std::string NameOf(const ProcessId& id) const;
  // Returns the rank as which a thread of the process makes calls on the communicator; nullopt if
  // the thread joined it as several ranks or, in a process of several ranks, not at all.
  static std::optional<uint32_t> RankIn(const Process& process, const std::string& communicator,
                                        uint64_t thread);
  // Adds the call to the job; if it cannot be imported, returns why.
  std::optional<Drop> Place(const ProcessId& id, const Process& process, const Call& call);

  const ImportOptions& options_;
  ImportReport& report_;
  std::map<ProcessId, Process> processes_;
  std::map<std::string, SeenCommunicator> communicators_;  // by id in hexadecimal digits
  std::set<std::string> separated_;                        // processes that drive several GPUs
  ProcessPlacement placement_;
  CapturedJob job_{"nsys"};
};

}  // namespace railyard
