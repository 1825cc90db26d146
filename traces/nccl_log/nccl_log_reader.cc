// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_reader.h"

#include "traces/nccl_log/nccl_log_assembly.h"
#include "traces/nccl_log/nccl_log_calls.h"
#include "traces/nccl_log/nccl_log_placement.h"
#include "traces/nccl_log/nccl_log_tuning.h"
#include "traces/trace/trace_check.h"

namespace railyard {

NcclLogImport ReadNcclLogs(const NcclLogOptions& options, Diagnostics& diagnostics) {
  NcclLogImport import;
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
