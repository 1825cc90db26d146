// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/dependencies/dependency_trace.h"
#include "traces/goal/goal_binary.h"
#include "traces/goal/goal_text_parser.h"
#include "traces/reading/lines.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kLineBytesMax = size_t{1} << 20;

bool IsBinaryGoal(std::string_view head) {
  if (head.size() < 8) return false;
  uint64_t magic = 0;
  for (size_t i = 0; i < 8; ++i) magic |= uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  return magic == kGoalMagic || magic == kGoalMagicUsed;
}

// num_ranks is the first word but for comments.
bool LooksLikeGoal(std::string_view head) {
  if (IsBinaryGoal(head)) return true;
  for (;;) {
    const size_t begin = head.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return false;
    head.remove_prefix(begin);
    size_t end = 0;
    if (head.starts_with("//")) {
      end = head.find('\n');
    } else if (head.starts_with("/*")) {
      end = head.find("*/");
      if (end != std::string_view::npos) end += 2;
    } else {
      return head.starts_with("num_ranks ") || head.starts_with("num_ranks\t");
    }
    if (end == std::string_view::npos) return false;
    head.remove_prefix(end);
  }
}

std::optional<GoalSchedule> ReadText(InputStream& stream, ImportedFile& file,
                                     Diagnostics& diagnostics) {
  GoalTextParser parser(stream.name(), diagnostics);
  const auto read = [&](std::string_view line) { return parser.ReadLine(line); };
  if (!ForEachLine(stream, kLineBytesMax, file, read, diagnostics)) return std::nullopt;
  return parser.Finish();
}

// Operations of a graph from those of GOAL, and what of them cannot be replayed.
class GoalGraph {
 public:
  GoalGraph(GoalSchedule schedule, ImportReport& report)
      : schedule_(std::move(schedule)), report_(report) {}

  DependencyGraph Take() {
    DependencyGraph graph;
    graph.origin = "goal";
    graph.recvs_state_buffers = true;  // as MPI's: LogGOPSim matches by source and tag alone
    graph.source_files = {report_.files.front().path};
    graph.ranks.resize(schedule_.ranks.size());
    for (uint32_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      for (GoalOperation& operation : schedule_.ranks[rank]) {
        graph.ranks[rank].push_back(OperationOf(rank, operation));
      }
      std::vector<GoalOperation>().swap(schedule_.ranks[rank]);
    }
    if (has_times_) {
      report_.assumed.push_back("The sizes of calc are nanoseconds.");
    }
    return graph;
  }

 private:
  GraphOperation OperationOf(uint32_t rank, GoalOperation& from) {
    GraphOperation operation;
    operation.source_line = from.line;
    operation.waits_for.assign(from.waits_for.begin(), from.waits_for.end());
    if (from.kind == GoalKind::kCalc) {
      has_times_ |= from.size > 0;
      operation.duration_ps = static_cast<int64_t>(
          std::min(from.size, static_cast<uint64_t>(kGraphDurationMaxPs) / kPsPerNs) * kPsPerNs);
      return operation;
    }
    ++report_.files.front().calls_seen;
    // A dropped operation stays as computation of length 0, so that its dependents keep their
    // order.
    if (const auto why = WhyDropped(rank, from)) {
      report_.Drop(why->first, 0, from.line, why->second);
      return operation;
    }
    operation.kind = from.kind == GoalKind::kSend ? CollectiveKind::kSend : CollectiveKind::kRecv;
    operation.count = from.size;
    operation.stated_bytes = from.size;
    operation.peer = GlobalRank{from.peer};
    operation.tag = from.tag;
    return operation;
  }

  static std::optional<std::pair<CallDropReason, std::string>> WhyDropped(
      uint32_t rank, const GoalOperation& call) {
    if (call.peer == kGoalAny) return std::pair(CallDropReason::kUnknownRank, "from any rank");
    if (call.tag == kGoalAny) return std::pair(CallDropReason::kMalformedRecord, "of any tag");
    if (call.peer == rank) return std::pair(CallDropReason::kOutOfRange, "its peer is itself");
    if (call.size == 0) return std::pair(CallDropReason::kZeroCount, "");
    if (call.size > kOperationBytesMax / 2) {
      return std::pair(CallDropReason::kOutOfRange, fmt::format("{} bytes", call.size));
    }
    return std::nullopt;
  }

  GoalSchedule schedule_;
  ImportReport& report_;
  bool has_times_ = false;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  const int errors_before = diagnostics.error_count();
  std::optional<GoalSchedule> schedule;
  files.ForEach(
      [&](InputStream& stream) {
        if (!import.report.files.empty()) {
          diagnostics.Error({.file = stream.name()}, "",
                            "is a second schedule (expected one file, which holds all ranks)");
          return false;
        }
        ImportedFile& file = import.report.files.emplace_back();
        file.path = stream.name();
        if (IsBinaryGoal(stream.Peek(8))) {
          schedule = ReadGoalBinary([&](char* to, size_t bytes) { return stream.Read(to, bytes); },
                                    stream.name(), diagnostics);
        } else {
          schedule = ReadText(stream, file, diagnostics);
        }
        file.bytes_read = stream.bytes_read();
        return true;
      },
      diagnostics);
  if (!schedule || diagnostics.error_count() > errors_before) return import;
  DependencyGraph graph = GoalGraph(*std::move(schedule), import.report).Take();
  if (options.ignore_times) {
    for (std::vector<GraphOperation>& rank : graph.ranks) {
      for (GraphOperation& operation : rank) operation.duration_ps = 0;
    }
  }
  import.trace = TraceOfGraph(std::move(graph), import.report, diagnostics);
  return import;
}

}  // namespace

constinit const TraceReader kGoalReader = {
    .format = "goal",
    .description =
        "LogGOPSim's GOAL, text or binary; written by trace export, and by "
        "schedule --goal",
    .recognizes = LooksLikeGoal,
    .read = ReadFiles};

}  // namespace railyard
