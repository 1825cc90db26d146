// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_reader.h"

#include "traces/nccl_log/nccl_log_assembly.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_tuning.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// The line of a call, or one of those that communicators and devices have at the beginning of a
// log, in the words of each version. Without calls, what surrounds a table of nccl-tests says less
// than the table.
bool LooksLikeNcclLog(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  const bool has_calls = holds("opCount ");
  if (has_calls && holds("sendbuff ")) return true;
  const bool has_table = holds("# nThread ") && holds(" minBytes ");
  return (holds("NCCL INFO") || holds("NCCL WARN")) && (has_calls || !has_table);
}

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  return ReadNcclLogs({.files = files.paths(),
                       .missing_ranks = options.missing_ranks,
                       .rank_map = options.rank_map,
                       .ranks_are_symmetric = options.ranks_are_symmetric,
                       .ignore_times = options.ignore_times},
                      diagnostics);
}

}  // namespace

constinit const TraceReader kNcclLogReader = {
    .format = "nccl-log",
    .description = "what NCCL and RCCL print with NCCL_DEBUG=INFO",
    .recognizes = LooksLikeNcclLog,
    .read = ReadFiles,
    .takes_ranks_of_processes = true};

TraceImport ReadNcclLogs(const NcclLogOptions& options, Diagnostics& diagnostics) {
  TraceImport import;
  import.report.format = "nccl-log";
  // Findings of others are not ours: only our own errors stop the import.
  Diagnostics own;
  LoggedCalls logged = ReadLoggedCalls(options.files, import.report, own);
  Placement placement = PlaceRanks(logged, options, import.report, own);
  AttachTuning(logged, placement, import.report);
  import.trace = AssembleTrace(logged, placement, options, import.report, own);
  if (import.trace) CheckTrace(*import.trace, options.files.front(), own);
  if (own.HasErrors()) import.trace.reset();
  for (const Finding& finding : own.findings()) {
    switch (finding.severity) {
      case Severity::kError:
        diagnostics.Error(finding.where, finding.field, finding.what);
        break;
      case Severity::kWarning:
        diagnostics.Warning(finding.where, finding.field, finding.what);
        break;
      case Severity::kNote:
        diagnostics.Note(finding.where, finding.field, finding.what);
        break;
    }
  }
  return import;
}

}  // namespace railyard
