// SPDX-License-Identifier: GPL-2.0-only
#include "traces/kineto/kineto_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/kineto/kineto_events.h"
#include "traces/kineto/kineto_pairing.h"
#include "traces/kineto/kineto_skew.h"
#include "traces/kineto/kineto_steps.h"
#include "traces/pytorch/comms_record.h"
#include "traces/pytorch_et/execution_trace_calls.h"
#include "traces/reading/captured_job.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

bool LooksLikeKineto(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (head[first] != '{' && head[first] != '[')) return false;
  return holds("\"traceEvents\"") || holds("\"deviceProperties\"") ||
         holds("\"distributedInfo\"") ||
         ((holds("\"ph\": \"X\"") || holds("\"ph\":\"X\"")) && holds("\"ts\"") && holds("\"cat\""));
}

class KinetoImport {
 public:
  KinetoImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  // Execution traces are read before the profiles that they complete.
  void ReadExecutionTrace(InputStream& stream) {
    report_.files.push_back({.path = stream.name()});
    execution_traces_.ReadFile(stream, report_, diagnostics_);
    report_.files.back().bytes_read = stream.bytes_read();
  }

  void ReadProfile(InputStream& stream) {
    const auto file_index = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    KinetoFile file;
    ReadKinetoFile(stream, file, diagnostics_);
    ImportedFile& reported = report_.files[file_index];
    reported.bytes_read = stream.bytes_read();
    if (report_.nccl_version.empty()) report_.nccl_version = file.nccl_version;
    if (file.world_size > 0) job_.StateRankCount(file.world_size);
    // Streams of one rank are put together again by the order in which their kernels began.
    std::stable_sort(file.kernels.begin(), file.kernels.end(), StartsBefore);
    JoinKernelsOfCalls(file);
    const uint32_t rank = file.rank ? *file.rank : job_.RankByPlace(stream.name(), report_);
    // Every profile of a job states the same number of ranks.
    if (!has_sized_groups_) execution_traces_.SizeGroups(file.world_size);
    has_sized_groups_ = true;
    Pair(file, rank);
    for (const KinetoKernel& kernel : file.kernels) {
      reported.calls_seen += kernel.batch == 0 ? 1 : file.batches[kernel.batch - 1].size();
    }
    if (file.host_calls > 0 && !file.first_kernel) without_kernels_ = stream.name();
    CheckOrder(file, rank, stream.name());
    CountWithoutKernel(file);
    AddCalls(file, rank, file_index);
  }

  std::optional<Trace> Finish() {
    Assume();
    if (without_kernels_ && report_.calls_seen() == 0 && !diagnostics_.HasErrors()) {
      diagnostics_.Error({*without_kernels_}, "",
                         "has calls of the host and no kernel of the GPU (expected a profile with "
                         "ProfilerActivity.CUDA)");
    }
    return BuildTrace(std::move(job_), options_, report_, diagnostics_);
  }

 private:
  // Counts the collectives of the host's records that no kernel of NCCL runs, where kernels name
  // the records of theirs: kernels of other libraries or copy engines may. Sends and Recvs of a
  // batch share a kernel.
  void CountWithoutKernel(const KinetoFile& file) {
    std::unordered_set<uint64_t> with_kernel;
    for (const KinetoKernel& kernel : file.kernels) {
      if (file.launches.contains(kernel.external_id)) with_kernel.insert(kernel.external_id);
    }
    if (with_kernel.empty()) return;
    for (const auto& [id, launch] : file.launches) {
      const auto kind = PytorchKind(file.records[launch.record - 1].collective);
      if (kind && !IsSendOrRecv(*kind) && !with_kernel.contains(id)) ++without_kernel_;
    }
  }

  // Gives kernels without sizes the calls of the host's records or of the rank's execution trace.
  void Pair(KinetoFile& file, uint32_t rank) {
    unpaired_ = PairWithBatches(file);
    if (!unpaired_.empty()) unpaired_ = ", and " + unpaired_;
    has_batches_ = has_batches_ || !file.batches.empty();
    for (const ExecutionTraceCalls::File& trace : execution_traces_.files()) {
      if (trace.rank != rank) continue;
      const std::string why = PairWithExecutionTrace(trace, file);
      if (why.empty()) {
        has_pairs_ = true;
      } else {
        unpaired_ += ", and the rank's execution trace does not have it: " + why;
      }
      return;
    }
  }

  // Warns of profiles of one rank that overlap or are not in order of time. Kernels are sorted.
  void CheckOrder(const KinetoFile& file, uint32_t rank, const std::string& name) {
    std::optional<EventTime> begin;
    std::optional<EventTime> end;
    for (const KinetoKernel& kernel : file.kernels) {
      if (!kernel.start) continue;
      if (!begin) begin = SinceBase(*kernel.start, file.base_time_ns);
      const EventTime kernel_end = SinceBase(EndOf(kernel), file.base_time_ns);
      if (!end || IsBefore(*end, kernel_end)) end = kernel_end;
    }
    if (!begin) return;
    const auto [at, is_first] = span_of_rank_.try_emplace(rank, Span{*end, name});
    if (is_first) return;
    if (IsBefore(*begin, at->second.end)) {
      const std::string what = fmt::format(
          "the profiles {} and {} of rank {} overlap or are not in order of time (expected each "
          "step once, in order): their calls follow each other as the files do",
          at->second.file, name, rank);
      diagnostics_.Warning({name}, "", what);
      report_.assumed.push_back(what);
    }
    if (IsBefore(at->second.end, *end)) at->second = {*end, name};
  }

  static EventTime SinceBase(EventTime time, int64_t base_time_ns) {
    constexpr int64_t kNsPerUs = kPsPerUs / kPsPerNs;
    time.picoseconds += base_time_ns % kNsPerUs * kPsPerNs;
    time.microseconds += base_time_ns / kNsPerUs + time.picoseconds / kPsPerUs;
    time.picoseconds %= kPsPerUs;
    return time;
  }

  void AddCalls(KinetoFile& file, uint32_t rank, uint32_t file_index) {
    job_.AddRank(rank);
    std::set<std::tuple<uint64_t, uint64_t, int64_t>> seen;  // correlation, stream, start
    std::map<uint64_t, EventTime> stream_is_free;
    const KinetoSteps steps(std::move(file.steps));
    uint32_t& steps_before = steps_of_rank_[rank];
    for (const KinetoKernel& kernel : file.kernels) {
      const auto drop = [&](CallDropReason reason, std::string detail) {
        report_.Drop(reason, file_index, kernel.line, std::move(detail));
      };
      if (!kernel.start) {
        drop(CallDropReason::kMalformedRecord, kernel.name + ": its time is none");
        continue;
      }
      const auto start_ps = PicosecondsBetween(*file.first_kernel, *kernel.start);
      if (!start_ps) {
        drop(CallDropReason::kMalformedRecord, kernel.name + ": begins 100 days from the first");
        continue;
      }
      if (!seen.insert({kernel.correlation, kernel.device_stream, *start_ps}).second) {
        drop(CallDropReason::kRecordedTwice, kernel.name);
        continue;
      }
      std::vector<CapturedCall> calls;
      for (const uint32_t record : RecordsOf(file, kernel)) {
        CapturedCall call;
        if (const auto defect = SizeOf(file, kernel, record, call)) {
          drop(defect->reason, fmt::format("{}: {}", kernel.name, defect->detail));
        } else {
          calls.push_back(std::move(call));
        }
      }
      if (calls.empty()) continue;
      const auto free = stream_is_free.try_emplace(kernel.device_stream, *file.first_kernel).first;
      calls.front().operation.compute_before_ps =
          std::max<int64_t>(PicosecondsBetween(free->second, *kernel.start).value_or(0), 0);
      wrong_durations_.Count(kernel.duration_is_none);
      free->second = EndOf(kernel);
      if (kernel.batch == 0) {
        calls.front().identity = IdentityOf(file, kernel, rank, calls.front().operation);
      }
      NoteEnd(calls.front(), rank, EndOf(kernel), file.base_time_ns);
      const uint32_t group = kernel.batch == 0 ? 0 : ++batches_of_rank_[rank];
      const uint32_t step = steps_before + steps.BegunBy(MadeAt(file, kernel));
      for (CapturedCall& call : calls) {
        call.operation.group = group;
        call.operation.measured_ps = kernel.duration_ps;
        call.step = step;
        call.operation.stream = job_.StreamOf(rank, kernel.device_stream);
        call.operation.source_file = file_index;
        call.operation.source_line =
            static_cast<uint32_t>(std::min<uint64_t>(kernel.line, UINT32_MAX));
        job_.Add(rank, std::move(call));
      }
    }
    steps_before += steps.count();
  }

  // Returns when the host made the kernel's call or, if the profile does not say, when it began.
  static EventTime MadeAt(const KinetoFile& file, const KinetoKernel& kernel) {
    const auto launched = file.launches.find(kernel.external_id);
    return launched == file.launches.end() ? *kernel.start
                                           : launched->second.start.value_or(*kernel.start);
  }

  // Returns the numbers of the records of the calls that a kernel runs: its own, that of its launch
  // or those of its batch; 0 if it has none.
  static std::vector<uint32_t> RecordsOf(const KinetoFile& file, const KinetoKernel& kernel) {
    if (kernel.batch != 0) return file.batches[kernel.batch - 1];
    if (kernel.record != 0) return {kernel.record};
    const auto launched = file.launches.find(kernel.external_id);
    return {launched == file.launches.end() ? 0 : launched->second.record};
  }

  // Returns 0 if the profile does not number the call.
  uint64_t IdentityOf(const KinetoFile& file, const KinetoKernel& kernel, uint32_t rank,
                      const TraceOperation& call) {
    const auto launched = file.launches.find(kernel.external_id);
    uint32_t sequence = kernel.sequence;
    if (sequence == 0 && launched != file.launches.end()) sequence = launched->second.sequence;
    if (sequence == 0 || IsSendOrRecv(call.kind)) return 0;
    Numbered& last = last_numbered_[{rank, call.communicator}];
    last.ordinal = last.sequence == sequence ? last.ordinal + 1 : 0;
    last.sequence = sequence;
    return NumberedIdentity(sequence, last.ordinal);
  }

  // Ends of all ranks are relative to that of the first call.
  void NoteEnd(const CapturedCall& call, uint32_t rank, EventTime end, int64_t base_time_ns) {
    if (IsSendOrRecv(call.operation.kind)) return;
    end = SinceBase(end, base_time_ns);
    if (!first_end_) first_end_ = end;
    constexpr int64_t kEndPsMax = int64_t{1} << 61;  // 26 days: differences fit 64 bits
    const int64_t end_ps = PicosecondsBetween(*first_end_, end).value_or(kEndPsMax);
    if (end_ps >= kEndPsMax || end_ps <= -kEndPsMax) return;
    ends_.Add(call.operation.communicator, rank, call.identity, end_ps);
  }

  static bool StartsBefore(const KinetoKernel& a, const KinetoKernel& b) {
    if (!a.start || !b.start) return a.start.has_value() < b.start.has_value();
    return IsBefore(*a.start, *b.start);
  }

  // Finds the size of a kernel's call in the record of this number.
  std::optional<CommsDefect> SizeOf(const KinetoFile& file, const KinetoKernel& kernel,
                                    uint32_t record, CapturedCall& call) {
    const auto launched = file.launches.find(kernel.external_id);
    if (record == 0) {
      return CommsDefect{CallDropReason::kSizesNotRecorded,
                         (kernel.has_shortened_parts ? "not all of its parts are listed"
                                                     : "it has no message size") +
                             unpaired_};
    }
    CommsRecord stated = file.records[record - 1];
    const auto group = file.group_ranks.find(stated.group_name);
    if (stated.group_ranks.empty() && group != file.group_ranks.end()) {
      stated.group_ranks = group->second;
    }
    // Not all profiles have the root or peer among the arguments of a kernel; those of its launch
    // may.
    if (!stated.root_or_peer && !stated.global_peer && launched != file.launches.end()) {
      const CommsRecord& launch = file.records[launched->second.record - 1];
      stated.root_or_peer = launch.root_or_peer;
      stated.global_peer = launch.global_peer;
    }
    if (auto defect = CallOfRecord(stated, job_, call)) return defect;
    const CollectiveKind kind = call.operation.kind;
    // PyTorch gathers unequal tensors by a Broadcast of each rank's (ProcessGroupNCCL::allgather),
    // and the record has the rank's own size.
    if (kind == CollectiveKind::kAllGather && kernel.name.find("Broadcast") != std::string::npos) {
      return CommsDefect{CallDropReason::kSizesNotRecorded,
                         "an all_gather by Broadcasts is of unequal sizes, of which it has one"};
    }
    has_times_ = true;
    has_unstated_root_ = has_unstated_root_ || (!stated.root_or_peer && HasRoot(kind));
    return std::nullopt;
  }

  void Assume() {
    wrong_durations_.Report(report_);
    if (has_times_ && !options_.ignore_times) {
      report_.assumed.push_back("times are in microseconds (ts, dur), by the clock of each rank");
      report_.assumed.push_back(
          "what lies between two kernels of a stream, by the GPU's clock of its rank, is "
          "computation");
      report_.assumed.push_back(
          "measured durations are the kernels', in which they also wait for the slowest rank");
    }
    report_.clock_skew = ends_.LargestSkew();
    if (report_.clock_skew && report_.clock_skew->ps != 0) {
      report_.assumed.push_back(
          "a collective ends on all of its ranks at one time, so that the median difference of the "
          "ends is that of the clocks; gaps are by a rank's own clock, so that it has no effect");
    }
    if (has_batches_) {
      report_.assumed.push_back(
          "kernels of Sends and Recvs without sizes are the host's batches of messages, in the "
          "order "
          "of their launches");
    }
    if (has_pairs_) {
      report_.assumed.push_back(
          "kernels without sizes are the calls of the execution trace of their rank, in order");
    }
    if (without_kernel_ > 0) {
      report_.assumed.push_back(fmt::format(
          "{} collectives that the host recorded have no kernel of NCCL's (cut off by the window, "
          "run by another library's kernels or by copy engines) and are left out",
          without_kernel_));
    }
    if (has_unstated_root_) {
      report_.assumed.push_back("roots are rank 0 of their groups where they are not recorded");
    }
  }

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"kineto"};
  ExecutionTraceCalls execution_traces_;
  // Says why kernels of the current file do not have the sizes of an execution trace; empty if
  // there is none.
  std::string unpaired_;
  CollectiveEnds ends_;
  std::optional<EventTime> first_end_;
  bool has_sized_groups_ = false;
  bool has_pairs_ = false;
  bool has_batches_ = false;
  std::map<uint32_t, uint32_t> batches_of_rank_;
  std::map<uint32_t, uint32_t> steps_of_rank_;  // in the profiles so far
  bool has_times_ = false;
  bool has_unstated_root_ = false;
  uint64_t without_kernel_ = 0;  // collectives
  WrongDurations wrong_durations_;
  std::optional<std::string> without_kernels_;  // a profile with calls of the host alone
  struct Span {
    EventTime end;
    std::string file;
  };
  std::map<uint32_t, Span> span_of_rank_;  // of the profiles so far
  struct Numbered {
    uint32_t sequence = 0;
    uint32_t ordinal = 0;  // among the calls of a coalesced group, which share a number
  };
  std::map<std::pair<uint32_t, uint32_t>, Numbered> last_numbered_;  // by rank and group
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  KinetoImport reader(options, import.report, diagnostics);
  const auto is_execution_trace = [](InputStream& stream) {
    return LooksLikeExecutionTrace(stream.Peek(InputStream::kPeekBytesMax));
  };
  const auto read_execution_trace = [&](InputStream& stream) {
    if (is_execution_trace(stream)) reader.ReadExecutionTrace(stream);
    return true;
  };
  const auto read_profile = [&](InputStream& stream) {
    if (!is_execution_trace(stream)) reader.ReadProfile(stream);
    return true;
  };
  files.ForEach(read_execution_trace, diagnostics);
  files.ForEach(read_profile, diagnostics);
  import.trace = reader.Finish();
  return import;
}

}  // namespace

constinit const TraceReader kKinetoReader = {
    .format = "kineto",
    .description = "what PyTorch's profiler exports (Chrome's trace JSON)",
    .recognizes = LooksLikeKineto,
    .read = ReadFiles,
    .completed_by = "pytorch-et"};

}  // namespace railyard
