// SPDX-License-Identifier: GPL-2.0-only
#include "traces/flight_recorder/flight_recorder_reader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "traces/flight_recorder/flight_recorder_entry.h"
#include "traces/flight_recorder/hang.h"
#include "traces/flight_recorder/unpickler.h"
#include "traces/pytorch/comms_record.h"
#include "traces/pytorch/pair_communicators.h"
#include "traces/reading/captured_job.h"
#include "traces/reading/captured_matching.h"
#include "traces/reading/value.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// Returns whether a file begins with protocol 2 to 5, as pickles have done since 2003.
bool IsPickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool LooksLikeFlightRecorder(std::string_view head) {
  if (IsPickle(head)) return true;
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || head[first] != '{') return false;
  const bool has_groups = holds("\"pg_config\": {") || holds("\"pg_config\":{");
  return (has_groups && (holds("\"version\"") || holds("\"entries\""))) ||
         (holds("\"entries\"") && holds("\"profiling_name\""));
}

// Returns the number behind "rank" in the file's name, or else the last number in the name. It is 3
// for "nccl_trace_rank_3".
std::optional<uint32_t> RankInName(std::string_view name) {
  name = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  size_t begin = name.rfind("rank");
  if (begin != std::string_view::npos) {
    begin = name.find_first_of("0123456789", begin);
  } else if (const size_t last = name.find_last_of("0123456789"); last != std::string_view::npos) {
    begin = name.find_last_not_of("0123456789", last);
    begin = begin == std::string_view::npos ? 0 : begin + 1;
  }
  if (begin == std::string_view::npos) return std::nullopt;
  uint32_t rank = 0;
  const char* const end = name.data() + name.size();
  if (std::from_chars(name.data() + begin, end, rank).ec != std::errc()) return std::nullopt;
  return rank < kTraceRanksMax ? std::optional(rank) : std::nullopt;
}

// Only the root has a list with the part of each rank.
bool HasRootInSizes(CollectiveKind kind) {
  return kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
}

struct PlacedEntry {
  FlightRecorderEntry entry;
  uint64_t line = 0;
  uint32_t batch = 0;  // number of its batch of Sends and Recvs; 0: none
};

struct DumpFile {
  std::vector<PlacedEntry> entries;
  std::map<std::string, std::vector<uint32_t>> ranks_of_group;
  std::string version;
  uint32_t batch_count = 0;
  // By group: the last Sends and Recvs, by place in `entries`, which have one sequence number.
  std::map<std::string, std::vector<size_t>> last_messages;
  std::map<std::string, std::vector<size_t>> last_collectives;
};

using SequenceField = std::optional<uint64_t> FlightRecorderEntry::*;

// Adds the last call to those of its group that may be made together: they share a number.
void NoteCall(SequenceField sequence, std::map<std::string, std::vector<size_t>>& last_calls,
              DumpFile& dump) {
  const FlightRecorderEntry& entry = dump.entries.back().entry;
  if (!(entry.*sequence)) return;
  std::vector<size_t>& last = last_calls[entry.record.group_name];
  if (!last.empty() && dump.entries[last.front()].entry.*sequence != entry.*sequence) last.clear();
  last.push_back(dump.entries.size() - 1);
}

// Takes the last calls of the entry's group, or none if they have another number than the entry.
std::vector<size_t> TakeCalls(const FlightRecorderEntry& coalesced, SequenceField sequence,
                              std::map<std::string, std::vector<size_t>>& last_calls,
                              const DumpFile& dump) {
  const auto at = last_calls.find(coalesced.record.group_name);
  if (at == last_calls.end() || at->second.empty()) return {};
  std::vector<size_t> calls = std::exchange(at->second, {});
  if (dump.entries[calls.front()].entry.*sequence != coalesced.*sequence) calls.clear();
  return calls;
}

// Ends a batch of Sends and Recvs (batch_isend_irecv), or a group of collectives, which a
// "coalesced" entry of their group and sequence number follows. Messages begin together. The state
// of them all is that of this entry, for their own have no events of the GPU and stay "scheduled".
// Returns false if it follows no such calls.
bool EndBatch(const FlightRecorderEntry& coalesced, DumpFile& dump) {
  std::vector<size_t> calls =
      TakeCalls(coalesced, &FlightRecorderEntry::message_sequence, dump.last_messages, dump);
  if (!calls.empty()) {
    ++dump.batch_count;
    for (const size_t message : calls) dump.entries[message].batch = dump.batch_count;
  } else if (!coalesced.is_point_to_point) {
    calls = TakeCalls(coalesced, &FlightRecorderEntry::sequence, dump.last_collectives, dump);
    std::erase_if(calls, [&](size_t call) {
      return dump.entries[call].entry.state != FlightRecorderEntry::State::kScheduled;
    });
  }
  for (const size_t call : calls) {
    FlightRecorderEntry& entry = dump.entries[call].entry;
    entry.state = coalesced.state;
    // The dump does not record how long each of several collectives took.
    if (entry.is_message || calls.size() == 1) entry.measured_ps = coalesced.measured_ps;
  }
  return !calls.empty();
}

class FlightRecorderImport {
 public:
  FlightRecorderImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  void ReadFile(InputStream& stream) {
    const auto index = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    DumpFile dump;
    const auto visit = [&](std::string_view key, const Value& value, uint64_t line) {
      if (key == "version") dump.version = value.text;
      if (key == "pg_config") ReadGroups(value, dump);
      if (key == "entries") AddEntry(value, line, index, dump);
    };
    if (IsPickle(stream.Peek(2))) {
      ForEachPickledItem(stream, "entries", visit, diagnostics_);
    } else {
      ForEachJsonItem(stream, "entries", visit, diagnostics_);
    }
    report_.files[index].bytes_read = stream.bytes_read();
    if (!dump.version.empty() && !dump.version.starts_with("2.")) {
      diagnostics_.Error({stream.name()}, "version",
                         fmt::format("{} is not read (expected 2.x)", dump.version.substr(0, 20)));
    }
    AddCalls(dump, index);
  }

  TraceImport Finish() {
    TraceImport import;
    StateRoots();
    const bool wants_scenario = !options_.hang_trace_path.empty();
    std::vector<Hang> hangs;
    if (wants_scenario && !diagnostics_.HasErrors() && !report_.files.empty()) hangs = FindHangs();
    report_.assumed.push_back(
        "a dump has no times of the GPU: the calls of a group follow each other");
    if (has_unstated_root_) {
      report_.assumed.push_back("roots are rank 0 of their groups where they are not recorded");
    }
    wrong_durations_.Report(report_);
    import.trace = BuildTrace(job_, options_, report_, diagnostics_);
    if (import.trace && wants_scenario) {
      HoldUncapturedRanks(hangs, job_, *import.trace);
      import.hang_scenario =
          HangScenario(hangs, options_.hang_trace_path, import.trace->rank_count);
    }
    if (import.trace) SeparatePairsInCircles(*import.trace, report_);
    return import;
  }

 private:
  void StateRoots() {
    for (auto& [rank, calls] : job_.calls()) {
      for (CapturedCall& call : calls) {
        TraceOperation& operation = call.operation;
        if (!HasRoot(operation.kind)) continue;
        const auto root = root_of_.find({operation.communicator, call.identity});
        if (root != root_of_.end()) {
          operation.root = root->second;
        } else {
          has_unstated_root_ = true;
        }
      }
    }
  }

  // Finds at least one hang, or reports an error.
  std::vector<Hang> FindHangs() {
    const HangSearch search = PlaceHangs(job_, unfinished_, report_);
    const SourceLocation where{report_.files.front().path};
    for (const Hang& hang : search.hangs) {
      if (hang.other_calls.empty()) continue;
      diagnostics_.Warning(where, "", "the job hung in calls that differ: " + Sentence(hang));
      report_.assumed.push_back(Sentence(hang) + " In the trace they are late for the first call.");
    }
    if (!search.hangs.empty()) return search.hangs;
    for (const std::string& unplaced : search.unplaced) diagnostics_.Error(where, "", unplaced);
    if (!search.unplaced.empty()) return {};
    const auto has_begun = [](const auto& message) { return message.second.has_begun; };
    const bool has_unfinished =
        !unfinished_.collectives.empty() ||
        std::any_of(unfinished_.messages.begin(), unfinished_.messages.end(), has_begun);
    diagnostics_.Error(
        where, "",
        has_unfinished_without_sizes_
            ? "the last group of collectives is unfinished, and its calls are not "
              "recorded (before PyTorch 2.7): the dumps do not say which they are"
        : has_unfinished ? "all ranks have come to every unfinished call: what they "
                           "wait for is not recorded"
        : !unfinished_.messages.empty()
            ? "a Send or Recv has not ended, and the dumps do not hold what its peer "
              "has called: they do not say who waits for whom (expected dumps of both "
              "ranks with all entries, not of active ones alone)"
            : "no collective is unfinished, and no Send or Recv: the job "
              "did not hang in one");
    return {};
  }

  // {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
  static void ReadGroups(const Value& groups, DumpFile& dump) {
    for (size_t i = 0; i < groups.keys.size() && i < groups.items.size(); ++i) {
      const Value* const ranks = groups.items[i].Find("ranks");
      if (ranks == nullptr) continue;
      std::vector<uint32_t> members;
      if (ranks->IsList()) {
        for (const Value& rank : ranks->items) {
          const uint64_t number = rank.Unsigned().value_or(kTraceRanksMax);
          if (number < kTraceRanksMax) members.push_back(static_cast<uint32_t>(number));
        }
      } else if (auto parsed = ParseRankList(ranks->text)) {
        members = *std::move(parsed);
      }
      dump.ranks_of_group[groups.keys[i]] = std::move(members);
    }
  }

  void AddEntry(const Value& value, uint64_t line, uint32_t index, DumpFile& dump) {
    auto entry = ParseFlightRecorderEntry(value);
    if (entry && IsPseudoCollective(entry->record.collective)) {
      if (entry->record.collective.ends_with("coalesced")) EndGroup(*entry, line, index, dump);
      return;
    }
    ++report_.files[index].calls_seen;
    if (!entry) {
      report_.Drop(CallDropReason::kMalformedRecord, index, line, "an entry without a name");
      return;
    }
    dump.entries.push_back({.entry = *std::move(entry), .line = line});
    if (dump.entries.back().entry.is_message) {
      NoteCall(&FlightRecorderEntry::message_sequence, dump.last_messages, dump);
    } else {
      NoteCall(&FlightRecorderEntry::sequence, dump.last_collectives, dump);
    }
  }

  // A group of collectives that are not recorded by themselves, as before PyTorch 2.7, has no
  // sizes.
  void EndGroup(const FlightRecorderEntry& coalesced, uint64_t line, uint32_t index,
                DumpFile& dump) {
    if (EndBatch(coalesced, dump) || !coalesced.states_point_to_point ||
        coalesced.is_point_to_point) {
      return;
    }
    ++report_.files[index].calls_seen;
    report_.Drop(CallDropReason::kSizesNotRecorded, index, line,
                 "a group of collectives, which are not recorded by themselves");
    if (coalesced.state != FlightRecorderEntry::State::kCompleted) {
      has_unfinished_without_sizes_ = true;
    }
  }

  void AddCalls(DumpFile& dump, uint32_t index) {
    const uint32_t rank = RankOf(report_.files[index].path);
    job_.AddRank(rank);
    std::set<uint64_t> record_ids;
    std::map<std::pair<std::string, uint64_t>, uint64_t> calls_of_sequence;
    for (PlacedEntry& placed : dump.entries) {
      FlightRecorderEntry& entry = placed.entry;
      if (entry.record_id == 0) unfinished_.whole_dumps.insert(rank);
      if (entry.record_id && !record_ids.insert(*entry.record_id).second) {
        report_.Drop(CallDropReason::kRecordedTwice, index, placed.line,
                     fmt::format("record {}", *entry.record_id));
        continue;
      }
      CommsRecord& record = entry.record;
      const auto group = dump.ranks_of_group.find(record.group_name);
      if (group != dump.ranks_of_group.end()) record.group_ranks = group->second;
      record.group_size = static_cast<uint32_t>(record.group_ranks.size());
      CapturedCall call;
      if (PytorchKind(record.collective) == CollectiveKind::kAllToAll) {
        if (entry.inputs.size() == record.group_size) record.in_split = entry.inputs;
        if (entry.outputs.size() == record.group_size) record.out_split = entry.outputs;
      }
      if (auto defect = CallOfRecord(record, job_, call)) {
        report_.Drop(defect->reason, index, placed.line, std::move(defect->detail));
        continue;
      }
      TraceOperation& operation = call.operation;
      operation.stream = job_.StreamOf(rank, operation.communicator);
      operation.group = placed.batch;
      operation.measured_ps = entry.measured_ps;
      wrong_durations_.Count(entry.duration_is_none);
      operation.source_file = index;
      operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(placed.line, UINT32_MAX));
      if (entry.sequence) {
        // The calls of a coalesced group share a number.
        const uint64_t ordinal = calls_of_sequence[{record.group_name, *entry.sequence}]++;
        call.identity = NumberedIdentity(*entry.sequence, ordinal);
        NoteRoot(entry, rank, call);
        if (entry.state != FlightRecorderEntry::State::kCompleted) {
          unfinished_.collectives[{operation.communicator, call.identity}][rank].has_begun =
              entry.state == FlightRecorderEntry::State::kStarted;
        }
      } else if (IsSendOrRecv(operation.kind) &&
                 entry.state != FlightRecorderEntry::State::kCompleted) {
        call.is_unfinished = true;
        unfinished_.messages[{rank, job_.calls()[rank].size()}].has_begun =
            entry.state == FlightRecorderEntry::State::kStarted;
      }
      job_.Add(rank, std::move(call));
    }
    if (!record_ids.empty() && !unfinished_.whole_dumps.contains(rank)) job_.MarkAsWindow(rank);
  }

  void NoteRoot(const FlightRecorderEntry& entry, uint32_t rank, const CapturedCall& call) {
    const CapturedGroup& group = job_.groups()[call.operation.communicator];
    const bool has_all_parts =
        group.size > 1 && std::max(entry.inputs.size(), entry.outputs.size()) == group.size;
    if (!HasRootInSizes(call.operation.kind) || !has_all_parts) return;
    const uint32_t root = CommunicatorRankIn(group, rank);
    if (root != kNotAMember) root_of_[{call.operation.communicator, call.identity}] = root;
  }

  uint32_t RankOf(const std::string& path) {
    const auto named = RankInName(path);
    const bool is_taken = named && job_.calls().contains(*named);
    if (is_taken && path.find("rank", path.rfind('/') + 1) != std::string::npos) {
      diagnostics_.Error({path}, "",
                         fmt::format("is a second dump of rank {} (expected one of each)", *named));
    }
    return named && !is_taken ? *named : job_.RankByPlace(path, report_);
  }

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"flight-recorder"};
  UnfinishedWork unfinished_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> root_of_;  // by group and identity
  bool has_unstated_root_ = false;
  bool has_unfinished_without_sizes_ = false;
  WrongDurations wrong_durations_;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  ImportReport report;
  FlightRecorderImport reader(options, report, diagnostics);
  const auto read_file = [&](InputStream& stream) {
    reader.ReadFile(stream);
    return true;
  };
  files.ForEach(read_file, diagnostics);
  TraceImport import = reader.Finish();
  import.report = std::move(report);
  return import;
}

}  // namespace

constinit const TraceReader kFlightRecorderReader = {
    .format = "flight-recorder",
    .description = "dumps of PyTorch's Flight Recorder, JSON or pickles",
    .recognizes = LooksLikeFlightRecorder,
    .read = ReadFiles,
    .records_hangs = true,
    .records_times = false};

}  // namespace railyard
