// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_profiler/nccl_profiler_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
#include "traces/nccl_profiler/nccl_profiler_event.h"
#include "traces/pytorch/comms_record.h"
#include "traces/reading/captured_job.h"
#include "traces/reading/lines.h"
#include "traces/reading/process_placement.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kLineBytesMax = 65'536;

bool LooksLikeNcclProfiler(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  // A communicator without calls has a file without events.
  if (head == "[\n{}]" || head == "[\n{}]\n") return true;
  if (!head.starts_with('[') || !holds("\"ph\": \"b\"")) return false;
  for (const char* category : {"GROUP", "GROUP_API", "COLL", "P2P", "PROXY", "CE_COLL"}) {
    if (holds(fmt::format("\"cat\": \"{}\"", category))) return true;
  }
  return false;
}

// "ncclFloat32"
std::optional<Datatype> DatatypeNamed(std::string_view name) {
  static const std::map<std::string_view, Datatype> kTypes = {
      {"ncclInt8", Datatype::kInt8},          {"ncclUint8", Datatype::kUint8},
      {"ncclInt32", Datatype::kInt32},        {"ncclUint32", Datatype::kUint32},
      {"ncclInt64", Datatype::kInt64},        {"ncclUint64", Datatype::kUint64},
      {"ncclFloat16", Datatype::kFloat16},    {"ncclFloat32", Datatype::kFloat32},
      {"ncclFloat64", Datatype::kFloat64},    {"ncclBfloat16", Datatype::kBfloat16},
      {"ncclChar", Datatype::kInt8},          {"ncclInt", Datatype::kInt32},
      {"ncclHalf", Datatype::kFloat16},       {"ncclFloat", Datatype::kFloat32},
      {"ncclDouble", Datatype::kFloat64},     {"ncclFloat8e4m3", Datatype::kFloat8E4M3},
      {"ncclFp8E4M3", Datatype::kFloat8E4M3}, {"ncclFloat8e5m2", Datatype::kFloat8E5M2},
      {"ncclFp8E5M2", Datatype::kFloat8E5M2}};
  const auto at = kTypes.find(name);
  return at == kTypes.end() ? std::nullopt : std::optional(at->second);
}

template <typename Choice>
Choice Named(std::string_view name, Choice last, std::string_view (*name_of)(Choice)) {
  for (int i = 1; i <= static_cast<int>(last); ++i) {
    const auto choice = static_cast<Choice>(i);
    if (name_of(choice) == name) return choice;
  }
  return Choice::kUnstated;
}

// A call that is being read; its kernels follow.
struct SeenCall {
  CapturedCall call;
  std::string communicator;
  std::string process;
  std::string stream;  // empty: not stated
  uint32_t rank = 0;   // in the communicator
  uint64_t sequence = 0;
  bool has_sequence = false;
  uint32_t file = 0;
  int64_t start_ps = 0;
  std::optional<int64_t> kernel_begin_ps;
  std::optional<int64_t> kernel_end_ps;
};

class NcclProfilerImport {
 public:
  NcclProfilerImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics) {}

  bool ReadFile(InputStream& stream) {
    file_ = static_cast<uint32_t>(report_.files.size());
    ImportedFile& file = report_.files.emplace_back();
    file.path = stream.name();
    is_open_ = false;
    api_ = {};
    group_ = 0;
    kernel_is_earlier_ = false;
    uint64_t line = 0;
    const bool is_read = ForEachLine(
        stream, kLineBytesMax, file,
        [&](std::string_view text) {
          ++line;
          ReadLine(text, line);
          return true;
        },
        diagnostics_);
    report_.files[file_].bytes_read = stream.bytes_read();
    return is_read;
  }

  std::optional<Trace> Finish() {
    NameProcesses();
    for (const SeenCall& seen : calls_) {
      SeenCommunicator& communicator = communicators_[seen.communicator];
      communicator.process_of_rank.try_emplace(seen.rank, seen.process);
    }
    for (auto& [id, communicator] : communicators_) communicator.size = SizeOf(id);
    // Processes of different servers may have one number, unless there are as many as the user
    // says.
    std::set<std::string> processes;
    for (const SeenCall& seen : calls_) processes.insert(seen.process);
    placement_ = PlaceProcesses(communicators_, options_.ranks == processes.size());
    report_.assumed.insert(report_.assumed.end(), placement_.assumed.begin(),
                           placement_.assumed.end());
    // The clock is that of the process, in all of its files.
    std::stable_sort(calls_.begin(), calls_.end(), [](const SeenCall& a, const SeenCall& b) {
      return std::tie(a.process, a.start_ps) < std::tie(b.process, b.start_ps);
    });
    for (SeenCall& seen : calls_) Add(seen);
    Assume();
    return BuildTrace(std::move(job_), options_, report_, diagnostics_);
  }

 private:
  // Holds what an enclosing event of the API says of its call.
  struct ApiCall {
    std::optional<uint32_t> root;
    std::string stream;
    bool is_of_message = false;
    uint32_t messages = 0;  // within it so far: more than one in the replays of a CUDA graph
  };

  void Drop(CallDropReason reason, uint64_t line, std::string detail) {
    report_.Drop(reason, file_, line, std::move(detail));
  }

  void ReadLine(std::string_view text, uint64_t line) {
    const std::optional<NcclProfilerEvent> event = ParseNcclProfilerLine(text);
    if (!event) {
      // The file was cut off within a line that may have been a call.
      if (text.find("\"COLL\"") != std::string_view::npos ||
          text.find("\"P2P\"") != std::string_view::npos) {
        ++report_.files[file_].calls_seen;
        Drop(CallDropReason::kTruncatedLine, line, {});
      }
      return;
    }
    const std::string_view category = event->category;
    if (category == "GROUP" || category == "GROUP_API") {
      group_ = event->is_begin ? ++groups_ : 0;
      group_of_replay_.clear();
    } else if (category == "COLL_API" || category == "P2P_API") {
      api_ = {};
      if (!event->is_begin) return;
      api_.is_of_message = category == "P2P_API";
      api_.root = NumberOf<uint32_t>(NcclProfilerField(event->fields, "root"));
      api_.stream = NcclProfilerField(event->fields, "Stream");
    } else if (category == "COLL" || category == "P2P") {
      if (event->is_begin) {
        BeginCall(*event, line);
      } else {
        is_open_ = false;
      }
    } else if (category == "CE_COLL" && event->is_begin) {
      ++report_.files[file_].calls_seen;
      Drop(CallDropReason::kUnsupportedKind, line, "a copy engine's, which names no communicator");
    } else if (category == "GPU" && event->name == "KernelCh" && is_open_ && event->time_ps) {
      TakeKernel(event->is_begin, *event->time_ps, calls_.back());
    }
  }

  // The plug-in prints the kernels that the pool's entry had in an earlier use, too, if they were
  // more than the call's.
  void TakeKernel(bool is_begin, int64_t time_ps, SeenCall& call) {
    if (is_begin) kernel_is_earlier_ = time_ps < call.start_ps;
    if (kernel_is_earlier_) return;
    std::optional<int64_t>& at = is_begin ? call.kernel_begin_ps : call.kernel_end_ps;
    at = is_begin ? std::min(at.value_or(time_ps), time_ps)
                  : std::max(at.value_or(time_ps), time_ps);
  }

  // Returns the number of a message's group; 0 if it is by itself. Each replay of a CUDA graph
  // calls what was captured within the same events of the API.
  uint32_t GroupOfMessage() {
    if (group_ == 0) return 0;
    const uint32_t replay = api_.is_of_message ? api_.messages++ : 0;
    if (replay == 0) return group_;
    const auto [number, is_new] = group_of_replay_.try_emplace(replay, groups_ + 1);
    if (is_new) ++groups_;
    return number->second;
  }

  void BeginCall(const NcclProfilerEvent& event, uint64_t line) {
    ++report_.files[file_].calls_seen;
    is_open_ = false;
    const auto field = [&](const char* name) { return NcclProfilerField(event.fields, name); };
    std::string_view name = event.name;
    if (name.starts_with("nccl")) name.remove_prefix(4);
    const auto kind = PytorchKind(name);
    if (!kind) return Drop(CallDropReason::kUnsupportedKind, line, std::string(event.name));
    const auto rank = NumberOf<uint32_t>(field("Rank"));
    const auto count = NumberOf<uint64_t>(field("Count"));
    const auto peer = NumberOf<uint32_t>(field("Peer"));
    // NCCL has no name for the one type (ncclDatatypeToString).
    const bool is_unnamed = field("Datatype") == "Unknown";
    const auto datatype =
        is_unnamed ? std::optional(Datatype::kUint8) : DatatypeNamed(field("Datatype"));
    unnamed_types_ += is_unnamed ? 1 : 0;
    const std::string_view communicator = field("CommHash");
    if (!NumberOf<uint64_t>(communicator) || !rank || *rank >= kTraceRanksMax || !event.time_ps) {
      return Drop(CallDropReason::kMalformedRecord, line, "no CommHash, Rank or time");
    }
    if (!count) return Drop(CallDropReason::kSizesNotRecorded, line, std::string(event.name));
    if (*count == 0) return Drop(CallDropReason::kZeroCount, line, std::string(event.name));
    if (!datatype)
      return Drop(CallDropReason::kUnknownDatatype, line, std::string(field("Datatype")));
    if (IsSendOrRecv(*kind) && (!peer || *peer >= kTraceRanksMax)) {
      return Drop(CallDropReason::kMalformedRecord, line, "its peer is not recorded");
    }
    SeenCall seen;
    TraceOperation& operation = seen.call.operation;
    operation.kind = *kind;
    operation.count = *count;
    operation.datatype = *datatype;
    operation.algorithm = Named(field("Algorithm"), Algorithm::kPat, AlgorithmName);
    operation.protocol = Named(field("Protocol"), Protocol::kSimple, ProtocolName);
    operation.source_file = file_;
    operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(line, UINT32_MAX));
    if (IsSendOrRecv(*kind)) {
      operation.peer = *peer;
      operation.group = GroupOfMessage();
    } else if (*kind == CollectiveKind::kBroadcast || *kind == CollectiveKind::kReduce) {
      operation.root = api_.root.value_or(0);
      has_unstated_root_ = has_unstated_root_ || !api_.root;
    }
    if (*count <= kOperationBytesMax) seen.call.stated_bytes = *count * DatatypeBytes(*datatype);
    const auto sequence = NumberOf<uint64_t>(field("SeqNum"));
    seen.has_sequence = sequence.has_value();
    seen.sequence = sequence.value_or(0);
    seen.communicator = communicator;
    seen.process = std::to_string(event.process);
    seen.stream = api_.stream;
    seen.rank = *rank;
    seen.file = file_;
    seen.start_ps = *event.time_ps;
    uint32_t& highest = highest_rank_[seen.communicator];
    highest = std::max({highest, *rank, peer.value_or(0)});
    calls_.push_back(std::move(seen));
    is_open_ = true;
  }

  // Process numbers may occur on several servers, and one process may drive several GPUs: where one
  // is seen as two ranks, its files are of different processes as far as it is known.
  void NameProcesses() {
    std::map<std::pair<std::string, std::string>, std::set<uint32_t>> ranks;
    std::set<std::string> ambiguous;
    for (const SeenCall& seen : calls_) {
      std::set<uint32_t>& of_process = ranks[{seen.communicator, seen.process}];
      of_process.insert(seen.rank);
      if (of_process.size() > 1) ambiguous.insert(seen.process);
    }
    for (SeenCall& seen : calls_) {
      if (!ambiguous.contains(seen.process)) continue;
      seen.process = RankOfProcess(seen.process, seen.rank, seen.communicator);
    }
  }

  uint32_t SizeOf(const std::string& communicator) {
    const uint32_t seen = highest_rank_.at(communicator) + 1;
    // With several that are as large, none is known to have all ranks.
    const bool is_largest = std::all_of(
        highest_rank_.begin(), highest_rank_.end(),
        [&](const auto& other) { return other.second + 1 < seen || other.first == communicator; });
    return is_largest ? std::max(seen, options_.ranks.value_or(0)) : seen;
  }

  void Add(SeenCall& seen) {
    const auto rank = placement_.rank_of_process.find(seen.process);
    TraceOperation& operation = seen.call.operation;
    if (rank == placement_.rank_of_process.end()) {
      report_.Drop(CallDropReason::kUnknownRank, seen.file, operation.source_line, seen.process);
      return;
    }
    const auto members = placement_.ranks_of_communicator.find(seen.communicator);
    operation.communicator =
        job_.GroupOf(seen.communicator, communicators_[seen.communicator].size,
                     members == placement_.ranks_of_communicator.end() ? std::vector<uint32_t>()
                                                                       : members->second);
    const auto [stream, is_new] = stream_numbers_.try_emplace(
        {rank->second, seen.stream.empty() ? "of " + seen.communicator : seen.stream},
        stream_numbers_.size());
    operation.stream = job_.StreamOf(rank->second, stream->second);
    if (seen.kernel_begin_ps && seen.kernel_end_ps) {
      operation.measured_ps = std::max<int64_t>(*seen.kernel_end_ps - *seen.kernel_begin_ps, 0);
      has_kernels_ = true;
    }
    // Pools keep the last calls, and do not number messages.
    job_.MarkAsWindow(rank->second);
    if (seen.has_sequence && seen.sequence < kSequenceMax) {
      seen.call.identity = IdentityOf(seen, rank->second);
      uint64_t& first =
          first_sequence_.try_emplace({seen.file, operation.kind}, seen.sequence).first->second;
      first = std::min(first, seen.sequence);
    }
    job_.Add(rank->second, std::move(seen.call));
  }

  // Numbers count by kind. They do not advance in the replays of a CUDA graph. Two records of one
  // call have the same time.
  uint64_t IdentityOf(const SeenCall& seen, uint32_t rank) {
    const TraceOperation& operation = seen.call.operation;
    const uint64_t number =
        seen.sequence * kCollectiveKindCount + static_cast<uint64_t>(operation.kind);
    const auto [last, is_new] = last_of_number_.try_emplace({rank, operation.communicator, number},
                                                            Numbered{seen.start_ps});
    if (!is_new && last->second.start_ps != seen.start_ps) {
      ++last->second.ordinal;
      last->second.start_ps = seen.start_ps;
      has_replays_ = true;
    }
    return NumberedIdentity(number, last->second.ordinal);
  }

  void Assume() {
    uint64_t overwritten = 0;
    for (const auto& [key, first] : first_sequence_) overwritten += first;
    if (overwritten > 0) {
      report_.assumed.push_back(fmt::format(
          "{} calls, by their SeqNum, are before the windows of events that the plug-in kept "
          "(NCCL_PROFILE_COLL_POOL_SIZE makes them larger)",
          overwritten));
    }
    for (const auto& [id, communicator] : communicators_) {
      if (communicator.process_of_rank.size() == communicator.size) continue;
      report_.assumed.push_back(fmt::format(
          "communicator {} has {} ranks: no file names a higher one", id, communicator.size));
    }
    if (has_kernels_) {
      report_.assumed.push_back(
          "measured durations are from the first channel's kernel to the last one's, as the host "
          "saw them");
    }
    if (has_replays_) {
      report_.assumed.push_back(
          "calls with one SeqNum are replays of a CUDA graph, matched in their order");
    }
    if (unnamed_types_ > 0) {
      report_.assumed.push_back(
          fmt::format("{} of an unknown type {} of uint8, the one type that NCCL does not name",
                      Counted(unnamed_types_, "call"), unnamed_types_ == 1 ? "is" : "are"));
    }
    if (has_unstated_root_) {
      report_.assumed.push_back("roots are rank 0 of their groups where they are not recorded");
    }
  }

  static constexpr uint64_t kSequenceMax = uint64_t{1} << 40;

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  CapturedJob job_{"nccl-profiler"};
  uint32_t file_ = 0;
  bool is_open_ = false;  // events are of the last call
  ApiCall api_;           // around the next calls
  uint32_t group_ = 0;    // around them; 0: none
  uint32_t groups_ = 0;
  std::map<uint32_t, uint32_t> group_of_replay_;  // of the current group
  bool kernel_is_earlier_ = false;                // the current one is of another call
  std::vector<SeenCall> calls_;
  std::map<std::string, uint32_t> highest_rank_;  // by communicator
  std::map<std::string, SeenCommunicator> communicators_;
  ProcessPlacement placement_;
  std::map<std::pair<uint32_t, std::string>, uint64_t> stream_numbers_;     // by rank
  std::map<std::pair<uint32_t, CollectiveKind>, uint64_t> first_sequence_;  // by file
  struct Numbered {
    int64_t start_ps = 0;
    uint64_t ordinal = 0;
  };
  // By rank, group, and number with kind: the last call.
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Numbered> last_of_number_;
  bool has_replays_ = false;
  bool has_kernels_ = false;
  bool has_unstated_root_ = false;
  uint64_t unnamed_types_ = 0;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import;
  NcclProfilerImport reader(options, import.report, diagnostics);
  files.ForEach([&](InputStream& stream) { return reader.ReadFile(stream); }, diagnostics);
  import.trace = reader.Finish();
  return import;
}

}  // namespace

constinit const TraceReader kNcclProfilerReader = {
    .format = "nccl-profiler",
    .description = "traces of NCCL's and RCCL's example profiler plug-in",
    .recognizes = LooksLikeNcclProfiler,
    .read = ReadFiles,
    .records_times = false,
    .takes_rank_count = true};

}  // namespace railyard
