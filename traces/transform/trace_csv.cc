// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_csv.h"

#include <string>

#include <fmt/format.h>

#include "simulator/diagnostics/csv_line.h"

namespace railyard {

void WriteTraceCsv(const Trace& trace, const std::function<void(const std::string&)>& write) {
  write(
      "rank,operation,kind,communicator,ranks,count,datatype,bytes,root,peer,stream,group,after,"
      "gap_ps,measured_ps,begins_iteration\n");
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    const auto& operations = trace.operations[rank];
    for (size_t i = 0; i < operations.size(); ++i) {
      const TraceOperation& operation = operations[i];
      std::string call = ",,,,,,";
      if (operation.kind != CollectiveKind::kCompute) {
        const TraceCommunicator& communicator =
            trace.communicators[trace.CommunicatorOf(rank, operation.communicator)];
        const auto size = static_cast<uint32_t>(communicator.ranks.size());
        const bool is_message =
            operation.kind == CollectiveKind::kSend || operation.kind == CollectiveKind::kRecv;
        call.clear();
        AppendCsvField(communicator.name, call);
        call += fmt::format(",{},{},{},{},{},{}", size, operation.count,
                            DatatypeName(operation.datatype), OperationBytes(operation, size),
                            is_message ? std::string() : std::to_string(operation.root),
                            is_message ? std::to_string(operation.peer) : std::string());
      }
      write(fmt::format(
          "{},{},{},{},{},{},{},{},{},{}\n", rank, i, CollectiveKindName(operation.kind), call,
          operation.stream, operation.group,
          operation.after == 0 ? std::string() : std::to_string(operation.after - 1),
          operation.compute_before_ps,
          operation.measured_ps == 0 ? std::string() : std::to_string(operation.measured_ps),
          operation.begins_iteration ? 1 : 0));
    }
  }
}

}  // namespace railyard
