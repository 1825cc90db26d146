// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/captured_job.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/reading/captured_iterations.h"
#include "traces/reading/captured_matching.h"
#include "traces/reading/captured_missing_ranks.h"
#include "traces/trace/trace_check.h"

namespace railyard {

void WrongDurations::Report(ImportReport& report) const {
  if (count_ == 0) return;
  report.assumed.push_back(fmt::format(
      "{} calls state a duration that is none (NaN, infinite, negative, too long): they "
      "have no measured duration",
      count_));
}

uint32_t CapturedJob::GroupOf(const std::string& name, uint32_t size,
                              const std::vector<uint32_t>& ranks) {
  const auto [entry, is_new] =
      group_of_.try_emplace({name, size, ranks}, static_cast<uint32_t>(groups_.size()));
  if (is_new) groups_.push_back({.name = name, .size = size, .ranks = ranks});
  return entry->second;
}

uint32_t CapturedJob::RankByPlace(const std::string& file, ImportReport& report) const {
  uint32_t rank = 0;
  while (calls_.contains(rank)) ++rank;
  report.assumed.push_back(
      fmt::format("{} does not state its rank, it is rank {} by its place", file, rank));
  return rank;
}

uint32_t CapturedJob::StreamOf(uint32_t rank, uint64_t stream) {
  const auto [entry, is_new] = stream_of_.try_emplace({rank, stream}, 0);
  if (is_new) entry->second = streams_of_rank_[rank]++;
  return entry->second;
}

void CapturedJob::StateRankCount(uint32_t rank_count) {
  stated_rank_count_ = std::max(stated_rank_count_, rank_count);
}

namespace {

class Builder {
 public:
  Builder(CapturedJob job, const ImportOptions& options, ImportReport& report,
          Diagnostics& diagnostics)
      : job_(std::move(job)), options_(options), report_(report), diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kImportFailed);
    if (job_.calls().empty()) return std::nullopt;
    CountRanks();
    if (rank_count_ > kTraceRanksMax) {
      Error(fmt::format("the job has {} ranks (expected at most {})", rank_count_, kTraceRanksMax));
      return Fail(CallDropReason::kImportFailed);
    }
    ResolveGroups();
    DropMisplaced();
    const bool repeats = options_.missing_ranks == MissingRanks::kReconstruct;
    const bool has_silent_ranks = MatchCapturedCalls(job_, repeats, report_);
    const bool is_complete = job_.calls().size() == rank_count_;
    if (!is_complete && !repeats) {
      Error(
          fmt::format("{} of {} ranks are missing (give the files of every rank, or have missing "
                      "ranks reconstructed)",
                      rank_count_ - job_.calls().size(), rank_count_));
      return Fail(CallDropReason::kRanksMissing);
    }
    const bool repeats_point_to_point =
        !is_complete && DropWhatCannotBeRepeated(job_, rank_count_, report_);
    if (!HasCalls()) return std::nullopt;
    MarkIterations(job_, report_);
    Trace trace = EmptyTrace();
    for (auto& [rank, calls] : job_.calls()) EmitRank(GlobalRank{rank}, calls, trace);
    if (!is_complete || has_silent_ranks) {
      if (!ReconstructMissingRanks(job_, {repeats_point_to_point, has_silent_ranks}, trace, report_,
                                   Where(), diagnostics_)) {
        return Fail(CallDropReason::kImportFailed);
      }
      RemoveUnequalIterations(trace, report_);
    }
    if (!CheckTrace(trace, Where().file, diagnostics_)) return Fail(CallDropReason::kImportFailed);
    CountImported();
    return trace;
  }

 private:
  SourceLocation Where() const { return {report_.files.front().path}; }
  void Error(std::string what) { diagnostics_.Error(Where(), "", std::move(what)); }

  void Drop(CapturedCall& call, CallDropReason reason, std::string detail = {}) {
    DropCapturedCall(call, reason, std::move(detail), report_);
  }

  std::nullopt_t Fail(CallDropReason reason) {
    for (auto& [rank, calls] : job_.calls()) {
      for (CapturedCall& call : calls) Drop(call, reason);
    }
    return std::nullopt;
  }

  void CountRanks() {
    rank_count_ = job_.stated_rank_count();
    for (const CapturedGroup& group : job_.groups()) {
      if (group.ranks.empty()) rank_count_ = std::max(rank_count_, group.size);
      for (const uint32_t rank : group.ranks) rank_count_ = std::max(rank_count_, rank + 1);
    }
    rank_count_ = std::max(rank_count_, job_.calls().rbegin()->first + 1);
  }

  void ResolveGroups() {
    uint64_t members = 0;
    for (CapturedGroup& group : job_.groups()) {
      members += std::max<uint64_t>(group.size, group.ranks.size());
      if (members > kTraceMembersMax) group.ranks.clear();
      if (group.ranks.empty() && group.size == rank_count_ && members <= kTraceMembersMax) {
        for (uint32_t rank = 0; rank < rank_count_; ++rank) group.ranks.push_back(rank);
      }
      std::vector<uint32_t> sorted = group.ranks;
      std::sort(sorted.begin(), sorted.end());
      const bool is_set = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
      if (!is_set || group.ranks.size() != group.size) group.ranks.clear();
    }
  }

  void DropMisplaced() {
    for (auto& [rank, calls] : job_.calls()) {
      for (CapturedCall& call : calls) {
        const TraceOperation& operation = call.operation;
        if (operation.kind == CollectiveKind::kCompute || call.dropped) continue;
        const CapturedGroup& group = job_.groups()[operation.communicator];
        if (group.ranks.empty()) {
          Drop(call, CallDropReason::kAmbiguousCommunicator,
               fmt::format("the members of group \"{}\" of {} ranks are not stated", group.name,
                           group.size));
        } else if (CommunicatorRankIn(group, rank) == kNotAMember) {
          Drop(call, CallDropReason::kUnknownRank,
               fmt::format("rank {} is not in its group \"{}\"", rank, group.name));
        } else {
          CheckSize(call, group.size);
        }
      }
    }
  }

  void CheckSize(CapturedCall& call, uint32_t size) {
    const TraceOperation& operation = call.operation;
    uint64_t elements = operation.count;
    for (const uint64_t part : call.sends) elements = std::max(elements, part);
    for (const uint64_t part : call.receives) elements = std::max(elements, part);
    const uint64_t elements_max =
        kOperationBytesMax / (uint64_t{DatatypeBytes(operation.datatype)} * size);
    const bool has_parts = !call.sends.empty() || !call.receives.empty();
    if (elements == 0) {
      Drop(call, CallDropReason::kZeroCount);
    } else if (elements > elements_max) {
      Drop(call, CallDropReason::kOutOfRange,
           fmt::format("{} elements of {} over {} ranks exceed {} bytes", elements,
                       DatatypeName(operation.datatype), size, kOperationBytesMax));
    } else if (operation.root >= size || operation.peer >= size) {
      Drop(call, CallDropReason::kOutOfRange,
           fmt::format("its root or peer is outside its group of {}", size));
    } else if (has_parts && (call.sends.size() != size || call.receives.size() != size)) {
      Drop(call, CallDropReason::kMalformedRecord,
           fmt::format("states {} parts sent and {} received in a group of {}", call.sends.size(),
                       call.receives.size(), size));
    }
  }

  bool HasCalls() {
    for (const auto& [rank, calls] : job_.calls()) {
      for (const CapturedCall& call : calls) {
        if (!call.dropped && call.operation.kind != CollectiveKind::kCompute) return true;
      }
    }
    return false;
  }

  Trace EmptyTrace() {
    Trace trace;
    trace.origin = job_.format();
    trace.nccl_version = report_.nccl_version;
    trace.rank_count = rank_count_;
    trace.operations.resize(rank_count_);
    for (const ImportedFile& file : report_.files) trace.source_files.push_back(file.path);
    // Only groups that are used become communicators.
    communicator_of_.assign(job_.groups().size(), kNotAMember);
    for (const auto& [rank, calls] : job_.calls()) {
      for (const CapturedCall& call : calls) {
        if (call.dropped || call.operation.kind == CollectiveKind::kCompute) continue;
        uint32_t& communicator = communicator_of_[call.operation.communicator];
        if (communicator != kNotAMember) continue;
        communicator = static_cast<uint32_t>(trace.communicators.size());
        const CapturedGroup& group = job_.groups()[call.operation.communicator];
        trace.communicators.push_back({.name = group.name, .ranks = GlobalRanksOf(group.ranks)});
      }
    }
    return trace;
  }

  void EmitRank(GlobalRank rank, const std::vector<CapturedCall>& calls, Trace& trace) {
    std::vector<TraceOperation>& program = trace.operations[rank];
    uint32_t groups = 0;  // numbers of groups, those of Sends and Recvs and those of AllToAllvs
    for (const CapturedCall& call : calls) groups = std::max(groups, call.operation.group);
    std::vector<uint32_t> place(calls.size() + 1);  // one more than where call i - 1 is; 0: nowhere
    std::map<uint32_t, int64_t> busy_ps;  // by stream: what dropped calls before the next one took
    for (size_t i = 0; i < calls.size(); ++i) {
      const CapturedCall& call = calls[i];
      TraceOperation operation = call.operation;
      operation.after = operation.after <= i ? place[operation.after] : 0;
      if (call.dropped || (options_.ignore_times && operation.kind == CollectiveKind::kCompute)) {
        busy_ps[operation.stream] += operation.compute_before_ps + operation.measured_ps;
        place[i + 1] = operation.after;
        continue;
      }
      int64_t& busy = busy_ps[operation.stream];
      operation.compute_before_ps =
          options_.ignore_times ? 0 : operation.compute_before_ps + std::exchange(busy, 0);
      if (operation.kind != CollectiveKind::kCompute) {
        operation.communicator = communicator_of_[operation.communicator];
      }
      if (call.sends.empty()) {
        program.push_back(operation);
      } else {
        EmitExchange(call, operation, ++groups, program);
      }
      place[i + 1] = static_cast<uint32_t>(program.size());
    }
  }

  // An AllToAllv is a group of Sends and Recvs.
  static void EmitExchange(const CapturedCall& call, TraceOperation operation, uint32_t group,
                           std::vector<TraceOperation>& program) {
    operation.group = group;
    operation.root = 0;
    operation.all_to_all = static_cast<uint32_t>(call.operation.all_to_all);
    for (uint32_t peer = 0; peer < call.sends.size(); ++peer) {
      operation.peer = peer;
      for (const auto& [kind, count] : {std::pair(CollectiveKind::kSend, call.sends[peer]),
                                        std::pair(CollectiveKind::kRecv, call.receives[peer])}) {
        if (count == 0) continue;
        operation.kind = kind;
        operation.count = count;
        program.push_back(operation);
        operation.compute_before_ps = 0;
        operation.begins_iteration = false;
      }
    }
  }

  void CountImported() {
    for (const auto& [rank, calls] : job_.calls()) {
      for (const CapturedCall& call : calls) {
        const TraceOperation& operation = call.operation;
        if (call.dropped || operation.kind == CollectiveKind::kCompute) continue;
        if (call.is_reconstructed) {
          ++report_.calls_reconstructed;
          continue;
        }
        report_.Import(operation.kind, operation.source_file, call.stated_bytes);
        if (operation.algorithm != Algorithm::kUnstated) ++report_.calls_with_algorithm;
      }
    }
  }

  CapturedJob job_;
  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  uint32_t rank_count_ = 0;
  std::vector<uint32_t> communicator_of_;  // by group
};

}  // namespace

std::optional<Trace> BuildTrace(CapturedJob job, const ImportOptions& options, ImportReport& report,
                                Diagnostics& diagnostics) {
  return Builder(std::move(job), options, report, diagnostics).Run();
}

}  // namespace railyard
