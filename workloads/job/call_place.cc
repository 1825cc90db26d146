// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/call_place.h"

#include <fmt/format.h>

namespace railyard {

SourceLocation PlaceOf(const Trace& trace, uint32_t source_file, uint32_t source_line) {
  // A user who reads a trace file has it at hand, and perhaps no log.
  if (source_line == 0 && !trace.file.empty()) return {trace.file, 1, 1};
  const std::string file = source_file < trace.source_files.size() ? trace.source_files[source_file]
                                                                   : "<" + trace.origin + ">";
  return {file, static_cast<int>(source_line), 0};
}

std::string DescribeCall(const TraceOperation& operation) {
  std::string text = fmt::format("{} of {} {}", CollectiveKindName(operation.kind), operation.count,
                                 DatatypeName(operation.datatype));
  switch (operation.kind) {
    case CollectiveKind::kSend:
      return text + fmt::format(" to rank {}", operation.peer);
    case CollectiveKind::kRecv:
      return text + fmt::format(" from rank {}", operation.peer);
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return text + fmt::format(" with root {}", operation.root);
    default:
      return text;
  }
}

}  // namespace railyard
