// SPDX-License-Identifier: GPL-2.0-only
// Combines NCCL's ranges of several processes into the calls of a job's ranks.
#pragma once

#include <cstddef>
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
  // Adds a kernel of a file whose ranges have all been added. It is that of the call or group of
  // calls in which its launch began; without one it is counted, and there is a note of it.
  void AddKernel(const NsysKernel& kernel, uint32_t file);
  // Returns nullopt if no call can be imported, or after an error.
  std::optional<Trace> Take(Diagnostics& diagnostics);

 private:
  using ProcessId = std::pair<uint32_t, uint64_t>;  // file, and id in it
  // Describes a call or a group of calls: the time in which the host made it, and its kernels.
  struct Launch {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    bool is_group = false;
    uint32_t collectives = 0;
    uint32_t messages = 0;
    bool has_kernels = false;
    int64_t first_kernel_ns = 0;
    int64_t last_kernel_end_ns = 0;
    uint64_t stream = 0;     // of the kernel that was launched first
    bool is_placed = false;  // one of its calls is in the job
  };
  struct Call {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    size_t launch = 0;  // in Process::launches
    NsysRange range;
  };
  struct Process {
    std::vector<Call> calls;
    std::vector<Launch> launches;
    std::map<uint64_t, std::vector<size_t>> launches_of;  // by thread, in order
    std::map<uint64_t, uint32_t> depth_of;                // depth of open groups, by thread
    std::set<uint64_t> is_inner_group;  // threads whose open group is a call's own
    // Creations of communicators that do not name theirs.
    std::vector<NsysRange> unnamed_inits;
    // By communicator: the ranks as which threads joined it.
    std::map<std::string, std::map<uint64_t, std::set<uint32_t>>> ranks_of;
  };
  // Notes when the streams of a rank are free, as its calls are placed.
  struct Timeline {
    std::optional<int64_t> begin_ns;
    std::map<uint64_t, int64_t> free_ns_of;  // by stream
    uint32_t last_stream = 0;                // dense number of the previous call's
  };
  // Describes a communicator that ncclCommSplit made.
  struct Split {
    std::string parent;
    struct Member {
      ProcessId process;
      uint64_t thread = 0;
    };
    std::map<std::pair<int64_t, uint32_t>, Member> members;  // by key and rank in the parent
  };
  struct Drop {
    CallDropReason reason = CallDropReason::kUnknownRank;
    std::string detail;
  };

  std::string NameOf(const ProcessId& id) const;
  // Notes the rank as which a thread of the process joined a communicator.
  void NoteInit(const NsysRange& range, const ProcessId& id);
  void Join(const std::string& communicator, uint32_t rank, const ProcessId& id, uint64_t thread);
  // Lets a process with one unnamed creation of a communicator, and calls on one communicator of
  // unknown creation, join that one.
  void JoinUnnamed();
  // Takes back the calls of a group that was only simulated.
  void LeaveOut(size_t launch, Process& process, uint32_t file);
  // Gives the communicators of splits their ranks: those of one color in the order of keys, if all
  // ranks of the parent were captured.
  void JoinSplits();
  // Returns the rank as which a thread of the process makes calls on the communicator; nullopt if,
  // in a process of several ranks, the thread joined it as several or not at all.
  static std::optional<uint32_t> RankIn(const Process& process, const std::string& communicator,
                                        uint64_t thread);
  // Adds the call to the job; if it cannot be imported, returns why.
  std::optional<Drop> Place(const ProcessId& id, Process& process, const Call& call);
  // Gives an operation the stream, duration and gap of its kernels.
  void SetTimes(Launch& launch, uint32_t rank, TraceOperation& operation);
  void Assume();

  const ImportOptions& options_;
  ImportReport& report_;
  std::map<ProcessId, Process> processes_;
  std::map<std::string, SeenCommunicator> communicators_;  // by id in hexadecimal digits
  std::map<std::string, Split> splits_;                    // by id of the new communicator
  std::set<std::string> separated_;                        // processes that drive several GPUs
  ProcessPlacement placement_;
  std::map<uint32_t, Timeline> timelines_;  // by rank
  uint64_t kernels_ = 0;
  uint64_t kernels_without_call_ = 0;
  uint64_t simulated_ = 0;  // calls
  WrongDurations wrong_durations_;
  CapturedJob job_{"nsys"};
};

}  // namespace railyard
