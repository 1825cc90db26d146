// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_assembly.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/nccl_log/nccl_log_collectives.h"
#include "traces/nccl_log/nccl_log_missing_ranks.h"
#include "traces/nccl_log/nccl_log_placed_calls.h"
#include "traces/nccl_log/nccl_log_point_to_point.h"
#include "traces/nccl_log/nccl_log_trace_builder.h"

namespace railyard {
namespace {

class Assembler {
 public:
  Assembler(LoggedCalls& logged, Placement& placement, const NcclLogOptions& options,
            ImportReport& report, Diagnostics& diagnostics)
      : placement_(placement),
        options_(options),
        report_(report),
        diagnostics_(diagnostics),
        calls_(logged, placement, report) {}

  std::optional<Trace> Run() {
    CheckOneProcessPerRank();
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kImportFailed);
    if (placement_.has_arbitrary_ranks) CheckSymmetry();
    if (diagnostics_.HasErrors() || calls_.AllAreDropped()) {
      return Fail(CallDropReason::kImportFailed);
    }
    if (!reconstructs() && !RefuseMissingRanks(calls_, diagnostics_)) {
      return Fail(CallDropReason::kRanksMissing);
    }
    calls_.DropThoseWithUnknownMembers();
    MatchCollectives(calls_, report_, diagnostics_);
    CutPointToPoint(calls_);
    const std::vector<uint32_t> group_of = GroupPointToPoint(calls_, report_);
    if (!calls_.missing().empty()) CheckPointToPointAlike(calls_, group_of, diagnostics_);
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kRanksDisagree);
    if (!calls_.missing().empty()) DropUnansweredMessages(calls_);
    if (calls_.AllAreDropped()) return Fail(CallDropReason::kImportFailed);
    LogTraceBuilder trace(calls_, report_);
    trace.AddCalls(group_of, !options_.ignore_times);
    if (!calls_.missing().empty()) {
      ReconstructMissingRanks(calls_, placement_, trace, report_, diagnostics_);
    }
    if (diagnostics_.HasErrors()) return Fail(CallDropReason::kImportFailed);
    CountImported();
    return std::move(trace).Take();
  }

 private:
  bool reconstructs() const {
    return options_.missing_ranks == NcclLogOptions::MissingRanks::kReconstruct;
  }

  std::optional<Trace> Fail(CallDropReason reason) {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (!calls_[i].dropped) calls_.Drop(i, reason, "");
    }
    // Without a file there is no place; the caller names what it was asked to read.
    if (!diagnostics_.HasErrors() && !report_.files.empty()) {
      diagnostics_.Error(calls_.FirstFile(), "", NothingImported());
    }
    return std::nullopt;
  }

  std::string NothingImported() const {
    if (report_.calls_seen() == 0) {
      return "no call was found (NCCL prints them with NCCL_DEBUG=INFO and "
             "NCCL_DEBUG_SUBSYS=INIT,COLL)";
    }
    const bool rank_map_helps = report_.DroppedFor(CallDropReason::kUnknownRank).count > 0;
    if (!rank_map_helps) {
      return report_.WhyNothingIsImported("the import report lists the lines");
    }
    if (placement_.rank_map_to_type.empty()) {
      return report_.WhyNothingIsImported("a rank_map says which rank each process is");
    }
    return report_.WhyNothingIsImported(
        fmt::format("a rank_map says which rank each process is; if they are in the order of their "
                    "names:{}",
                    placement_.rank_map_to_type));
  }

  // Whichever rank a process took, its calls must be what each other rank does; those too that are
  // dropped because their communicator's ranks are not known.
  void CheckSymmetry() {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      const LoggedCall& call = calls_[i];
      const uint32_t size = calls_.Handle(call.handle).rank_count;
      const bool is_of_all = size == placement_.rank_count;
      if (!IsP2p(call) && is_of_all) continue;
      const std::string_view kind = CollectiveKindName(call.kind);
      diagnostics_.Error(
          calls_.PlaceOf(call), "--ranks symmetric",
          is_of_all
              ? fmt::format("{} is not the same on all ranks (a --rank-map says which rank each "
                            "process is)",
                            kind)
              : fmt::format("{} is on a communicator of {} of the {} ranks: which they are depends "
                            "on the rank (a --rank-map says which rank each process is)",
                            kind, size, placement_.rank_count));
      return;
    }
  }

  void CheckOneProcessPerRank() {
    std::vector<bool> has_process(placement_.rank_count);
    for (const Endpoint& endpoint : placement_.endpoints) {
      if (!endpoint.rank) continue;
      if (has_process[*endpoint.rank]) {
        diagnostics_.Error(calls_.FirstFile(), "",
                           fmt::format("two processes are global rank {} (one process per rank; "
                                       "logs of one job only)",
                                       *endpoint.rank));
      }
      has_process[*endpoint.rank] = true;
    }
  }

  void CountImported() {
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      const LoggedCall& call = calls_[i];
      if (call.dropped) continue;
      report_.Import(call.kind, call.file, uint64_t{call.count} * DatatypeBytes(call.datatype));
      if (call.algorithm != Algorithm::kUnstated) ++report_.calls_with_algorithm;
    }
    report_.rank_count = placement_.rank_count;
  }

  Placement& placement_;
  const NcclLogOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  PlacedCalls calls_;
};

}  // namespace

std::optional<Trace> AssembleTrace(LoggedCalls& logged, Placement& placement,
                                   const NcclLogOptions& options, ImportReport& report,
                                   Diagnostics& diagnostics) {
  return Assembler(logged, placement, options, report, diagnostics).Run();
}

}  // namespace railyard
