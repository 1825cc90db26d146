// SPDX-License-Identifier: GPL-2.0-only
#include "traces/inspector/inspector_reader.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "traces/inspector/inspector_record.h"
#include "traces/reading/captured_job.h"
#include "traces/reading/process_placement.h"
#include "traces/reading/value.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kLineBytesMax = size_t{16} << 20;

bool LooksLikeInspector(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  return head.starts_with('{') &&
         (holds("\"coll_perf\"") || holds("\"p2p_perf\"") || holds("\"dump_stats\"") ||
          holds("\"inspector_output_format_version\""));
}

struct PlacedCall {
  InspectorCall call;
  std::string communicator;
  std::string process;
  uint32_t communicator_rank = 0;
  uint32_t file = 0;
  uint64_t line = 0;
};

class InspectorImport {
 public:
  InspectorImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  void ReadFile(InputStream& stream) {
    file_ = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    source_.reset();
    std::string text;
    uint64_t line = 0;
    bool more = true;
    while (more) {
      more = NextLine(stream, text);
      if (!more && text.empty()) break;
      ++line;
      if (text.find_first_not_of(" \t\r") != std::string::npos) ReadLine(text, line);
    }
    report_.files[file_].bytes_read = stream.bytes_read();
    report_.files[file_].lines_read = line;
  }

  std::optional<Trace> Finish() {
    const std::set<std::string> separated = SeparateRanks(communicators_);
    const ProcessPlacement placement = PlaceProcesses(communicators_, separated.empty());
    report_.assumed.insert(report_.assumed.end(), placement.assumed.begin(),
                           placement.assumed.end());
    // Lines without an event trace keep their place behind the last one with a time.
    FindUnordered();
    for (auto& [process, calls] : calls_of_process_) {
      SortByTime(calls);
      const std::vector<uint32_t> groups = GroupMessages(calls);
      for (size_t i = 0; i < calls.size(); ++i) {
        PlacedCall& call = calls[i];
        if (separated.contains(process)) {
          call.process = RankOfProcess(process, call.communicator_rank, call.communicator);
        }
        Add(placement, call, groups[i]);
      }
    }
    if (has_groups_) {
      report_.assumed.push_back(
          "Inspector records no groups: Sends and Recvs of a communicator that follow each other, "
          "each "
          "before the others end where times are recorded, are one, until one comes again");
    }
    if (!unordered_.empty()) {
      report_.assumed.push_back(
          "without event traces it is not recorded how Sends and Recvs follow collectives of their "
          "communicator: neither wait for the other");
    }
    if (const uint64_t missing = MissingNumbers(); missing > 0) {
      report_.assumed.push_back(fmt::format(
          "{} calls, by their coll_sn, are between those in the files: the plug-in did not write "
          "them, or their files are not here",
          missing));
    }
    if (stated_dropped_ > 0) {
      report_.assumed.push_back(fmt::format(
          "Inspector itself dropped {} records before it wrote these files", stated_dropped_));
    }
    if (stated_records_ > calls_after_stats_) {
      report_.assumed.push_back(
          fmt::format("Inspector's dump_stats announce {} records, {} are in the files",
                      stated_records_, calls_after_stats_));
    }
    if (wrapped_sizes_ > 0) {
      report_.assumed.push_back(
          fmt::format("the sizes of {} are stated as 2^64 less, as Inspector does for uint8",
                      Counted(wrapped_sizes_, "call")));
    }
    wrong_durations_.Report(report_);
    report_.assumed.push_back("Inspector records no datatypes: calls are of bytes");
    return BuildTrace(std::move(job_), options_, report_, diagnostics_);
  }

 private:
  // The next line without its end; false at the end of the file. Too long ones are cut off, which
  // makes them no JSON.
  static bool NextLine(InputStream& stream, std::string& text) {
    text.clear();
    for (;;) {
      const std::string_view next = stream.Peek();
      if (next.empty()) return false;
      const size_t end = next.find('\n');
      const size_t count = std::min(end, next.size());
      if (text.size() < kLineBytesMax) text += next.substr(0, count);
      stream.Skip(end == std::string_view::npos ? count : count + 1);
      if (end != std::string_view::npos) return true;
    }
  }

  void ReadLine(const std::string& text, uint64_t number) {
    const auto line = ParseJson(text);
    if (!line || !line->IsMap()) {
      // A line that was cut off may have been a call.
      ++report_.files[file_].calls_seen;
      report_.Drop(CallDropReason::kTruncatedLine, file_, number, "is no JSON object");
      return;
    }
    if (auto source = ParseInspectorSource(*line)) {
      source_ = *std::move(source);
      SeenCommunicator& communicator = communicators_[source_->communicator];
      communicator.size = std::max(communicator.size, source_->size);
      if (source_->process.empty()) {
        source_->process = fmt::format("{} of {}", source_->rank, source_->communicator);
      }
      communicator.process_of_rank.try_emplace(source_->rank, source_->process);
      if (!source_->version.empty() && !source_->version.starts_with("v4")) {
        diagnostics_.Error(
            {report_.files[file_].path, static_cast<int>(std::min<uint64_t>(number, INT32_MAX))},
            "inspector_output_format_version",
            source_->version.substr(0, 20) + " is not read (expected v4.x)");
      }
    }
    if (const auto counts = ParseInspectorDropCounts(*line)) {
      stated_records_ += counts->records;
      stated_dropped_ += counts->dropped;
      has_stats_ = true;
    }
    if (auto call = ParseInspectorCall(*line)) Keep(*std::move(call), number);
  }

  void Keep(InspectorCall call, uint64_t line) {
    ++report_.files[file_].calls_seen;
    if (has_stats_) ++calls_after_stats_;
    if (call.has_wrapped_size) ++wrapped_sizes_;
    const auto drop = [&](CallDropReason reason, std::string detail = {}) {
      report_.Drop(reason, file_, line, std::move(detail));
    };
    if (!source_) return drop(CallDropReason::kUnknownProcess, "no header stands before it");
    if (!call.kind) return drop(CallDropReason::kUnsupportedKind, call.name);
    if (!call.has_size) return drop(CallDropReason::kSizesNotRecorded, call.name);
    const bool is_point_to_point =
        call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
    if (is_point_to_point && (!call.peer || *call.peer >= source_->size)) {
      return drop(CallDropReason::kMalformedRecord, "its peer is not recorded");
    }
    calls_of_process_[source_->process].push_back({.call = std::move(call),
                                                   .communicator = source_->communicator,
                                                   .process = source_->process,
                                                   .communicator_rank = source_->rank,
                                                   .file = file_,
                                                   .line = line});
  }

  // Finds the communicators with collectives and messages without a time. Inspector writes all
  // collectives of a dump before all messages of it (inspectorCommInfoDump in
  // plugins/profiler/inspector/inspector_json.cc), and the dumps
  // of two ranks end at different calls.
  void FindUnordered() {
    std::map<std::string, std::pair<bool, bool>> has;  // collectives and messages without a time
    for (const auto& [process, calls] : calls_of_process_) {
      for (const PlacedCall& placed : calls) {
        if (placed.call.start_us) continue;
        auto& [collectives, messages] = has[placed.communicator];
        (IsSendOrRecv(*placed.call.kind) ? messages : collectives) = true;
      }
    }
    for (const auto& [communicator, both] : has) {
      if (both.first && both.second) unordered_.insert(communicator);
    }
  }

  // Counts the numbers that no collective of a rank has between the lowest and the highest of its
  // kind and communicator. Calls without a number have 0.
  uint64_t MissingNumbers() const {
    uint64_t missing = 0;
    for (const auto& [process, calls] : calls_of_process_) {
      std::map<std::tuple<std::string, uint32_t, CollectiveKind>, std::set<uint64_t>> numbers;
      for (const PlacedCall& placed : calls) {
        const CollectiveKind kind = *placed.call.kind;
        const uint64_t number = placed.call.sequence;
        if (IsSendOrRecv(kind) || number == 0 || number >= kSequenceMax) continue;
        numbers[{placed.communicator, placed.communicator_rank, kind}].insert(number);
      }
      for (const auto& [key, present] : numbers) {
        const uint64_t span = *present.rbegin() - *present.begin() + 1;
        missing = std::min(missing + (span - present.size()), kSequenceMax);
      }
    }
    return missing;
  }

  static void SortByTime(std::vector<PlacedCall>& calls) {
    std::vector<std::pair<int64_t, size_t>> order;
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < calls.size(); ++i) {
      last = calls[i].call.start_us.value_or(last);
      order.push_back({last, i});
    }
    std::sort(order.begin(), order.end());
    std::vector<PlacedCall> sorted;
    for (const auto& [time, i] : order) sorted.push_back(std::move(calls[i]));
    calls = std::move(sorted);
  }

  // Returns for each call of a process the number of the group to which it belongs, from 1; 0 for
  // none. Messages that are not of one ncclGroup may get one, too; without it those that are would
  // wait for each other.
  std::vector<uint32_t> GroupMessages(const std::vector<PlacedCall>& calls) {
    std::vector<uint32_t> group_of(calls.size());
    std::vector<size_t> members;
    std::set<std::pair<CollectiveKind, uint32_t>> messages;
    int64_t end_us = INT64_MIN;  // of the last message whose times are recorded
    uint32_t groups = 0;
    const auto close = [&] {
      if (members.size() > 1) {
        ++groups;
        has_groups_ = true;
        for (const size_t member : members) group_of[member] = groups;
      }
      members.clear();
      messages.clear();
      end_us = INT64_MIN;
    };
    for (size_t i = 0; i < calls.size(); ++i) {
      const InspectorCall& call = calls[i].call;
      if (!IsSendOrRecv(*call.kind)) {
        close();
        continue;
      }
      if (!members.empty()) {
        const PlacedCall& first = calls[members.front()];
        const bool is_later = call.start_us && end_us != INT64_MIN && *call.start_us >= end_us;
        const bool same = first.communicator == calls[i].communicator &&
                          first.communicator_rank == calls[i].communicator_rank;
        if (!same || is_later || messages.contains({*call.kind, *call.peer})) close();
      }
      members.push_back(i);
      messages.insert({*call.kind, *call.peer});
      if (call.start_us && call.measured_ps > 0 &&
          *call.start_us < INT64_MAX - call.measured_ps / kPsPerUs) {
        end_us = std::max(end_us, *call.start_us + call.measured_ps / kPsPerUs);
      }
    }
    close();
    return group_of;
  }

  void Add(const ProcessPlacement& placement, PlacedCall& placed, uint32_t group) {
    const auto rank = placement.rank_of_process.find(placed.process);
    if (rank == placement.rank_of_process.end()) {
      report_.Drop(CallDropReason::kUnknownRank, placed.file, placed.line, placed.process);
      return;
    }
    const InspectorCall& call = placed.call;
    const auto members = placement.ranks_of_communicator.find(placed.communicator);
    CapturedCall captured;
    TraceOperation& operation = captured.operation;
    operation.kind = *call.kind;
    operation.communicator =
        job_.GroupOf(placed.communicator, communicators_[placed.communicator].size,
                     members == placement.ranks_of_communicator.end() ? std::vector<uint32_t>()
                                                                      : members->second);
    operation.count = call.bytes;
    operation.datatype = Datatype::kUint8;
    operation.peer = call.peer.value_or(0);
    operation.group = group;
    const bool is_apart = IsSendOrRecv(operation.kind) && unordered_.contains(placed.communicator);
    operation.stream =
        job_.StreamOf(rank->second, 2 * uint64_t{operation.communicator} + (is_apart ? 1 : 0));
    operation.algorithm = call.algorithm;
    operation.protocol = call.protocol;
    operation.measured_ps = call.measured_ps;
    wrong_durations_.Count(call.duration_is_none);
    operation.source_file = placed.file;
    operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(placed.line, UINT32_MAX));
    captured.stated_bytes = call.bytes > kOperationBytesMax ? 0 : call.bytes;
    // Numbers count by kind, and dumps begin where they begin.
    if (call.sequence < kSequenceMax) {
      captured.identity =
          (call.sequence + 1) * kCollectiveKindCount + static_cast<uint64_t>(*call.kind);
    }
    job_.Add(rank->second, std::move(captured));
  }

  static constexpr uint64_t kSequenceMax = uint64_t{1} << 56;

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"inspector"};
  uint32_t file_ = 0;
  std::optional<InspectorSource> source_;  // that the next records are of
  std::map<std::string, SeenCommunicator> communicators_;
  std::map<std::string, std::vector<PlacedCall>> calls_of_process_;
  std::set<std::string> unordered_;  // communicators, by FindUnordered()
  bool has_stats_ = false;
  bool has_groups_ = false;
  uint64_t stated_records_ = 0;
  uint64_t stated_dropped_ = 0;
  uint64_t wrapped_sizes_ = 0;
  uint64_t calls_after_stats_ = 0;
  WrongDurations wrong_durations_;
};

}  // namespace

constinit const TraceReader kInspectorReader = {
    .format = "inspector",
    .description = "JSON lines of NCCL's and RCCL's Inspector plug-in",
    .recognizes = LooksLikeInspector,
    .read = ReadEachFile<InspectorImport>};

}  // namespace railyard
