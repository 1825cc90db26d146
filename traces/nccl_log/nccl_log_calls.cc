// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_calls.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "traces/nccl_log/log_line_reader.h"
#include "traces/nccl_log/nccl_log_call_record.h"
#include "traces/nccl_log/nccl_log_line.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/nccl_log/wrapped_call.h"
#include "traces/reading/input_files.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

CallDropReason ReasonOf(CallDefect defect) {
  switch (defect) {
    case CallDefect::kUnnamed:
      return CallDropReason::kUnnamedOperation;
    case CallDefect::kUnsupportedKind:
      return CallDropReason::kUnsupportedKind;
    case CallDefect::kUnknownDatatype:
      return CallDropReason::kUnknownDatatype;
    case CallDefect::kTruncated:
    case CallDefect::kNone:
      break;
  }
  return CallDropReason::kTruncatedLine;
}

class LogCollector {
 public:
  explicit LogCollector(ImportReport& report) : report_(report) {}

  void ReadFile(InputStream& stream) {
    const auto file = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    file_ = file;
    LogLineReader reader(stream, kNcclLogLineBytesMax);
    std::string tail;  // the end of the text before, where a call's mark may have begun
    while (reader.Next()) {
      line_ = reader.lines_read();
      if (!reader.is_continuation()) {
        AddLine(reader.text());
        tail.clear();
        if (reader.text().size() >= kNcclLogLineBytesMax) KeepTail(reader.text(), tail);
        continue;
      }
      FlushWrapped();
      const size_t from = tail.size();
      tail += reader.text();
      for (uint64_t i = CountNcclCalls(tail, from); i > 0; --i) {
        ++report_.files[file].calls_seen;
        report_.Drop(CallDropReason::kLineTooLong, file_, line_);
      }
      KeepTail(std::string(tail), tail);
    }
    FlushWrapped();
    report_.files[file].lines_read = reader.lines_read();
    report_.files[file].bytes_read = stream.bytes_read();
  }

  // Calls whose line lost its prefix belong to the process whose communicator they name, if there
  // is only one.
  LoggedCalls Finish() {
    AdoptOrphans();
    if (lines_left_out_ > 0) {
      report_.assumed.push_back(
          fmt::format("Ray left out {} of NCCL because they resembled others: their calls are "
                      "missing (expected "
                      "a log with RAY_DEDUP_LOGS=0)",
                      Counted(lines_left_out_, "line")));
    }
    if (calls_joined_ > 0) {
      report_.assumed.push_back(fmt::format(
          "{} wrapped over several lines {} joined again, where only one reading is a call",
          Counted(calls_joined_, "call"), calls_joined_ == 1 ? "is" : "are"));
    }
    return std::move(result_);
  }

 private:
  struct RecentProcess {
    std::string host;  // empty: none
    uint64_t pid = 0;
    uint32_t process = 0;
  };
  struct Orphan {
    size_t position = 0;  // calls before it
    uint64_t pointer = 0;
    uint32_t rank_count = 0;
    LoggedCall call;
  };

  // ---- Lines. ----

  void AddLine(const std::string& text) {
    CountLeftOut(text);
    if (!wrapped_.text().empty()) {
      switch (wrapped_.Append(text)) {
        case WrappedCall::Appended::kCallGoesOn:
          return;
        case WrappedCall::Appended::kCallIsWhole:
          ++calls_joined_;
          FlushWrapped();
          return;
        case WrappedCall::Appended::kNothing:
          FlushWrapped();
          break;
      }
    }
    const std::vector<LogRecord> records = ParseNcclLogLine(text);
    if (text.size() < kNcclLogLineBytesMax && WrappedCall::MayBeginIn(text, records)) {
      wrapped_.Begin(text);
      wrapped_line_ = line_;
    } else {
      AddRecords(records);
    }
  }

  // Ray writes lines that differ in their numbers alone once: "… [repeated 3x across cluster]".
  void CountLeftOut(std::string_view text) {
    constexpr std::string_view kBegin = "[repeated ";
    const size_t end = text.find("x across cluster]");
    if (end == std::string_view::npos || text.find("NCCL") == std::string_view::npos) return;
    const size_t begin = text.rfind(kBegin, end);
    if (begin == std::string_view::npos) return;
    const size_t digits = begin + kBegin.size();
    constexpr uint64_t kLinesMax = 1'000'000;  // of one message: more is no number of Ray's
    const uint64_t lines = NumberOf<uint64_t>(text.substr(digits, end - digits)).value_or(0);
    if (lines > 1 && lines <= kLinesMax) lines_left_out_ += lines - 1;
  }

  void FlushWrapped() {
    if (wrapped_.text().empty()) return;
    const uint64_t line = std::exchange(line_, wrapped_line_);
    AddRecords(ParseNcclLogLine(wrapped_.text()));
    line_ = line;
    wrapped_.Clear();
  }

  void AddRecords(const std::vector<LogRecord>& records) {
    for (const LogRecord& record : records) {
      std::visit([this](const auto& r) { Add(r); }, record);
    }
  }

  static void KeepTail(const std::string& text, std::string& tail) {
    tail = text.substr(text.size() - std::min(text.size(), kNcclCallMarkBytesMax));
  }

  // ---- Processes and handles. ----

  // A host name glued to the end of the text before it is known by its shorter form from cleaner
  // lines, if at all.
  std::string_view HostOf(const LogPrefix& prefix) const {
    if (prefix.glued_host == prefix.host) return prefix.host;
    std::string_view best;
    for (const std::string& host : hosts_) {
      if (prefix.glued_host.ends_with(host) && host.size() > best.size()) best = host;
    }
    return best.empty() ? prefix.host : best;
  }

  // Lines of a few processes alternate, so that most of them are among the recent ones.
  uint32_t ProcessOf(const LogPrefix& prefix) {
    RecentProcess& recent = recent_[prefix.pid % recent_.size()];
    const bool is_plain = prefix.glued_host.size() == prefix.host.size();
    if (is_plain && recent.pid == prefix.pid && recent.host == prefix.host) return recent.process;
    const uint32_t process = FindProcess(prefix);
    if (is_plain) recent = {std::string(prefix.host), prefix.pid, process};
    return process;
  }

  uint32_t FindProcess(const LogPrefix& prefix) {
    const std::string_view host = HostOf(prefix);
    key_.assign(host);
    key_ += ':';
    key_ += std::to_string(prefix.pid);
    const auto [entry, is_new] =
        process_of_.try_emplace(key_, static_cast<uint32_t>(result_.processes.size()));
    if (is_new) {
      LogProcess process;
      process.host = host;
      process.pid = prefix.pid;
      process.first_file = file_;
      process.first_line = line_;
      result_.processes.push_back(std::move(process));
      handle_of_.emplace_back();
      hosts_.emplace(host);
    }
    return entry->second;
  }

  CommunicatorHandle* CurrentHandle(uint32_t process, uint64_t pointer) {
    const auto found = handle_of_[process].find(pointer);
    return found == handle_of_[process].end() ? nullptr : &result_.handles[found->second];
  }

  uint32_t NewHandle(uint32_t process, uint64_t pointer, uint32_t rank_count) {
    const auto index = static_cast<uint32_t>(result_.handles.size());
    CommunicatorHandle handle;
    handle.process = process;
    handle.pointer = pointer;
    handle.rank_count = rank_count;
    result_.handles.push_back(std::move(handle));
    result_.processes[process].handles.push_back(index);
    handle_of_[process][pointer] = index;
    return index;
  }

  // ---- Records. ----

  void Add(const LogCall& record) {
    ++report_.files[file_].calls_seen;
    if (record.defect != CallDefect::kNone) {
      report_.Drop(ReasonOf(record.defect), file_, line_, record.defect_detail);
      return;
    }
    if (std::string defect = RangeDefect(record); !defect.empty()) {
      report_.Drop(CallDropReason::kOutOfRange, file_, line_, std::move(defect));
      return;
    }
    if (record.count == 0) {
      report_.Drop(CallDropReason::kZeroCount, file_, line_, std::string(record.name));
      return;
    }
    LoggedCall call;
    call.file = file_;
    call.line = line_;
    call.op_count = record.op_count;
    call.count = record.count;
    call.stream = record.stream;
    call.root_or_peer = record.root;
    call.kind = record.kind;
    call.datatype = record.datatype;
    // A root's block of a Gather or Scatter is elsewhere in the larger buffer.
    call.in_place = record.same_buffers && record.kind == CollectiveKind::kAllToAll;
    if (record.time) {
      call.time_ns = record.time->ns;
      result_.time_decimals = std::max(result_.time_decimals, record.time->decimals);
    }
    result_.calls_with_other_time += record.has_other_time ? 1 : 0;
    if (!record.prefix) {
      orphans_.push_back({.position = result_.calls.size(),
                          .pointer = record.communicator,
                          .rank_count = record.rank_count,
                          .call = call});
      return;
    }
    const uint32_t process = ProcessOf(*record.prefix);
    const CommunicatorHandle* current = CurrentHandle(process, record.communicator);
    // A pointer that was freed, or that now stands for another size, is another communicator.
    call.handle =
        current == nullptr || current->destroyed || current->rank_count != record.rank_count
            ? NewHandle(process, record.communicator, record.rank_count)
            : handle_of_[process][record.communicator];
    CommunicatorHandle& handle = result_.handles[call.handle];
    if (!handle.has_calls) handle.call_device = record.prefix->device;
    handle.has_calls = true;
    if (record.rank && handle.rank.value_or(*record.rank) != *record.rank) {
      report_.Drop(CallDropReason::kOutOfRange, file_, line_,
                   fmt::format("globalrank {} on a communicator in which its process is rank {}",
                               *record.rank, *handle.rank));
      return;
    }
    if (record.rank) handle.rank = record.rank;
    result_.calls.push_back(call);
  }

  static std::string RangeDefect(const LogCall& call) {
    if (call.rank_count < 1 || call.rank_count > kTraceRanksMax) {
      return fmt::format("nranks {} (1 to {})", call.rank_count, kTraceRanksMax);
    }
    if (call.root >= call.rank_count) {
      return fmt::format("root {} of {} ranks", call.root, call.rank_count);
    }
    if (call.rank && *call.rank >= call.rank_count) {
      return fmt::format("globalrank {} of {} ranks", *call.rank, call.rank_count);
    }
    const auto bytes =
        static_cast<unsigned __int128>(call.count) * DatatypeBytes(call.datatype) * call.rank_count;
    if (bytes > kOperationBytesMax) {
      return fmt::format("count {} over {} ranks", call.count, call.rank_count);
    }
    return {};
  }

  void Add(const LogInit& record) {
    if (record.rank_count < 1 || record.rank_count > kTraceRanksMax ||
        record.rank >= record.rank_count) {
      return;
    }
    const uint32_t process = ProcessOf(record.prefix);
    const CommunicatorHandle* current = CurrentHandle(process, record.communicator);
    const bool is_new =
        current == nullptr || current->destroyed || current->rank_count != record.rank_count ||
        (current->rank && *current->rank != record.rank) ||
        // Made again, though no line said that the pointer was freed.
        (record.phase == LogInit::Phase::kStart && (current->complete || current->has_calls)) ||
        (record.phase == LogInit::Phase::kComplete && current->complete);
    const uint32_t index = is_new ? NewHandle(process, record.communicator, record.rank_count)
                                  : handle_of_[process][record.communicator];
    if (record.parent && !result_.handles[index].parent) {
      LinkToParent(index, *record.parent, record);
    }
    CommunicatorHandle& handle = result_.handles[index];
    handle.rank = record.rank;
    if (record.cuda_device) handle.init_device = record.cuda_device;
    if (!record.bus_id.empty()) handle.bus_id = record.bus_id;
    if (!record.comm_id.empty()) handle.comm_id = record.comm_id;
    if (record.phase == LogInit::Phase::kComplete) handle.complete = true;
    // Graph lines that the thread has printed for the rank belong to the communicator that it now
    // completes.
    std::map<uint32_t, LoggedGraph>& graphs = graphs_of_[{process, record.prefix.tid}];
    if (record.phase == LogInit::Phase::kComplete) handle.graph = std::move(graphs[record.rank]);
    if (record.phase != LogInit::Phase::kInfo) graphs.erase(record.rank);
  }

  LoggedGraph& GraphOf(const LogPrefix& prefix, uint32_t rank) {
    return graphs_of_[{ProcessOf(prefix), prefix.tid}][rank];
  }
  void Add(const LogRing& record) {
    GraphOf(record.prefix, record.rank).next[record.channel] = record.next;
  }
  void Add(const LogWholeRing& record) {
    LoggedGraph& graph = GraphOf(record.prefix, 0);
    graph.rings[record.channel] = record.ranks;
    graph.ring_count = record.channel_count;
  }
  void Add(const LogTreePlace& record) {
    GraphOf(record.prefix, record.rank).parent[record.channel] = record.parent;
  }

  void LinkToParent(uint32_t index, uint64_t pointer, const LogInit& record) {
    CommunicatorHandle& handle = result_.handles[index];
    const auto parent = handle_of_[handle.process].find(pointer);
    if (parent == handle_of_[handle.process].end() || parent->second == index) return;
    handle.parent = parent->second;
    handle.color = record.color.value_or(0);
    // The order of the lines replaces the split count where NCCL does not print it (2.21 to 2.23).
    const uint32_t order = ++result_.handles[parent->second].split_count;
    handle.split_number = record.split_count.value_or(order);
  }

  void Add(const LogInitTimings& record) {
    if (record.rank_count < 1 || record.rank >= record.rank_count) return;
    const auto [stated, is_new] = result_.processes[ProcessOf(record.prefix)].timings.try_emplace(
        {record.rank_count, record.prefix.device}, record.rank);
    if (!is_new && stated->second != record.rank) stated->second.reset();
  }

  void Add(const LogDestroy& record) {
    CommunicatorHandle* current = CurrentHandle(ProcessOf(record.prefix), record.communicator);
    if (current != nullptr) current->destroyed = true;
  }

  void Add(const LogTuning& record) {
    result_.processes[ProcessOf(record.prefix)].tuning.push_back(
        {.calls_before = result_.calls.size(),
         .kind = record.kind,
         .bytes = record.bytes,
         .bytes_are_per_rank = record.bytes_are_per_rank,
         .algorithm = record.algorithm,
         .protocol = record.protocol});
  }

  void Add(const LogVersion& record) {
    if (report_.nccl_version.empty()) report_.nccl_version = record.version;
  }

  // ---- Lines without a prefix. ----

  void AdoptOrphans() {
    if (orphans_.empty()) return;
    std::unordered_map<uint64_t, std::vector<uint32_t>> handles_of;
    for (uint32_t i = 0; i < result_.handles.size(); ++i) {
      handles_of[result_.handles[i].pointer].push_back(i);
    }
    CallList merged;
    // inserted_before[k]: adopted calls that stand before the k-th call, for the tuning lines.
    std::vector<size_t> adopted_positions;
    size_t next = 0;
    for (Orphan& orphan : orphans_) {
      const auto handles = handles_of.find(orphan.pointer);
      const bool known = handles != handles_of.end() && handles->second.size() == 1 &&
                         result_.handles[handles->second.front()].rank_count == orphan.rank_count;
      if (!known) {
        report_.Drop(CallDropReason::kUnknownProcess, orphan.call.file, orphan.call.line);
        continue;
      }
      while (next < orphan.position) merged.push_back(result_.calls[next++]);
      orphan.call.handle = handles->second.front();
      result_.handles[orphan.call.handle].has_calls = true;
      merged.push_back(orphan.call);
      adopted_positions.push_back(orphan.position);
    }
    while (next < result_.calls.size()) merged.push_back(result_.calls[next++]);
    result_.calls = std::move(merged);
    if (adopted_positions.empty()) return;
    for (LogProcess& process : result_.processes) {
      for (TuningLine& line : process.tuning) {
        line.calls_before +=
            static_cast<size_t>(std::upper_bound(adopted_positions.begin(), adopted_positions.end(),
                                                 line.calls_before) -
                                adopted_positions.begin());
      }
    }
    report_.assumed.push_back(
        fmt::format("{} calls whose line lost its HOST:PID:TID belong to the one process that has "
                    "a communicator of that address",
                    adopted_positions.size()));
  }

  ImportReport& report_;
  LoggedCalls result_;
  uint32_t file_ = 0;
  uint64_t line_ = 0;
  WrappedCall wrapped_;
  uint64_t wrapped_line_ = 0;  // where it begins
  uint64_t calls_joined_ = 0;
  uint64_t lines_left_out_ = 0;
  std::string key_;
  std::array<RecentProcess, 64> recent_;  // by process number
  std::set<std::string> hosts_;
  std::unordered_map<std::string, uint32_t> process_of_;           // by "host:pid"
  std::vector<std::unordered_map<uint64_t, uint32_t>> handle_of_;  // by process, then pointer
  std::vector<Orphan> orphans_;
  // Graphs of communicators that are being created: by process and thread, then by rank.
  std::map<std::pair<uint32_t, uint64_t>, std::map<uint32_t, LoggedGraph>> graphs_of_;
};

}  // namespace

LoggedCalls ReadLoggedCalls(const std::vector<std::string>& files, ImportReport& report,
                            Diagnostics& diagnostics) {
  LogCollector collector(report);
  std::set<std::string> read;
  for (const std::string& path : files) {
    if (!std::filesystem::exists(path)) {
      diagnostics.Error({.file = path}, "", "does not exist (an NCCL log was expected)");
    } else if (std::filesystem::is_directory(path)) {
      diagnostics.Error({.file = path}, "", "is a directory (an NCCL log was expected)");
    } else if (!read.insert(std::filesystem::canonical(path).string()).second) {
      diagnostics.Error({.file = path}, "", "is given twice (each log once)");
    } else {
      const auto read_file = [&](InputStream& stream) {
        collector.ReadFile(stream);
        return true;
      };
      const InputFiles input({path});
      input.ForEach(read_file, diagnostics);
      for (const auto& [name, reason] : input.passed_over()) {
        report.passed_over.push_back({.path = name, .reason = reason});
      }
      continue;
    }
    report.files.push_back({.path = path});
  }
  return collector.Finish();
}

void DropCall(LoggedCall& call, CallDropReason reason, std::string detail, ImportReport& report) {
  call.dropped = true;
  report.Drop(reason, call.file, call.line, std::move(detail));
}

}  // namespace railyard
