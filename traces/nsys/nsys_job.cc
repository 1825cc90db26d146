// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_job.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

struct NamedKind {
  std::string_view name;
  CollectiveKind kind;
};
constexpr NamedKind kKinds[] = {{"ncclAllReduce", CollectiveKind::kAllReduce},
                                {"ncclAllGather", CollectiveKind::kAllGather},
                                {"ncclReduceScatter", CollectiveKind::kReduceScatter},
                                {"ncclBroadcast", CollectiveKind::kBroadcast},
                                {"ncclReduce", CollectiveKind::kReduce},
                                {"ncclAlltoAll", CollectiveKind::kAllToAll},
                                {"ncclGather", CollectiveKind::kGather},
                                {"ncclScatter", CollectiveKind::kScatter},
                                {"ncclSend", CollectiveKind::kSend},
                                {"ncclRecv", CollectiveKind::kRecv}};

// The longest duration or gap that is taken as one: 100 days, which fit 64 bits as picoseconds.
constexpr int64_t kSpanNsMax = int64_t{100} * 24 * 3600 * 1'000'000'000;
constexpr int64_t kTimeNsMax = INT64_MAX / 2;  // differences fit 64 bits

// A call that moves data, but not as any of kKinds: one-sided, or of a version to come.
bool IsUnsupportedCall(const NsysRange& range) {
  const bool is_one_sided =
      range.name == "ncclPutSignal" || range.name == "ncclSignal" || range.name == "ncclWaitSignal";
  return is_one_sided || (range.bytes && !range.rank_count);
}

int64_t SpanPs(int64_t from_ns, int64_t to_ns) {
  return std::clamp<int64_t>(to_ns - from_ns, 0, kSpanNsMax) * kPsPerNs;
}

}  // namespace

void NsysJob::NoteInit(const NsysRange& range, const ProcessId& id) {
  if (!range.communicator || !range.rank || !range.rank_count || *range.rank < 0 ||
      *range.rank >= *range.rank_count || *range.rank_count > kTraceRanksMax) {
    return;
  }
  if (*range.communicator == 0) {
    if (!range.parent) processes_[id].unnamed_inits.push_back(range);
    return;
  }
  const std::string name = fmt::format("{:#x}", *range.communicator);
  const auto rank = static_cast<uint32_t>(*range.rank);
  if (range.parent) {
    Split& split = splits_[name];
    split.parent = fmt::format("{:#x}", *range.parent);
    split.members[{range.key.value_or(0), rank}] = {id, range.thread};
    return;
  }
  SeenCommunicator& communicator = communicators_[name];
  communicator.size = std::max(communicator.size, static_cast<uint32_t>(*range.rank_count));
  Join(name, rank, id, range.thread);
}

void NsysJob::Join(const std::string& communicator, uint32_t rank, const ProcessId& id,
                   uint64_t thread) {
  communicators_[communicator].process_of_rank.try_emplace(rank, NameOf(id));
  processes_[id].ranks_of[communicator][thread].insert(rank);
}

void NsysJob::JoinUnnamed() {
  uint64_t joined = 0;
  for (auto& [id, process] : processes_) {
    if (process.unnamed_inits.size() != 1) continue;
    std::set<uint64_t> unknown;
    for (const Call& call : process.calls) {
      const auto& used = call.range.communicator;
      if (used && !process.ranks_of.contains(fmt::format("{:#x}", *used))) unknown.insert(*used);
    }
    if (unknown.size() != 1 || splits_.contains(fmt::format("{:#x}", *unknown.begin()))) continue;
    NsysRange init = process.unnamed_inits.front();
    init.communicator = *unknown.begin();
    NoteInit(init, id);
    ++joined;
  }
  if (joined == 0) return;
  report_.assumed.push_back(
      fmt::format("{} processes joined the one communicator that they use: what created it was "
                  "within a group, or not blocking, and does not name it.",
                  joined));
}

void NsysJob::JoinSplits() {
  std::multimap<std::string, std::string> splits_of;  // by parent
  for (const auto& [name, split] : splits_) splits_of.emplace(split.parent, name);
  // A split may itself be split: it comes behind its parent.
  std::vector<std::string> parents;
  for (const auto& [name, communicator] : communicators_) parents.push_back(name);
  while (!parents.empty()) {
    const std::string parent = std::move(parents.back());
    parents.pop_back();
    const SeenCommunicator& seen = communicators_.at(parent);
    if (seen.process_of_rank.size() < seen.size) continue;
    const auto [begin, end] = splits_of.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      const auto split = splits_.extract(child->second);
      if (split.empty()) continue;
      communicators_[child->second].size = static_cast<uint32_t>(split.mapped().members.size());
      uint32_t rank = 0;
      for (const auto& [place, member] : split.mapped().members) {
        Join(child->second, rank++, member.process, member.thread);
      }
      parents.push_back(child->second);
    }
  }
}

void NsysJob::Add(NsysRange&& range, uint32_t file) {
  const ProcessId id{file, range.process};
  Process& process = processes_[id];
  NoteInit(range, id);
  uint32_t& depth = process.depth_of[range.thread];
  std::vector<size_t>& launches = process.launches_of[range.thread];
  const auto begin_launch = [&](int64_t end_ns, bool is_group) {
    launches.push_back(process.launches.size());
    process.launches.push_back(
        {.begin_ns = range.start_ns, .end_ns = end_ns, .is_group = is_group});
  };
  // A call may make a group of its own, as a Send outside of groups: its kernel is the call's.
  const bool is_within_call =
      depth == 0 && !launches.empty() && range.start_ns < process.launches[launches.back()].end_ns;
  if (range.name == "ncclGroupStart") {
    if (is_within_call) process.is_inner_group.insert(range.thread);
    if (depth++ == 0 && !is_within_call) begin_launch(INT64_MAX, true);
    return;
  }
  const bool is_simulated = range.name == "ncclGroupSimulateEnd";
  if (range.name == "ncclGroupEnd" || is_simulated) {
    if (depth > 0 && --depth == 0 && process.is_inner_group.erase(range.thread) == 0) {
      process.launches[launches.back()].end_ns = range.end_ns;
      if (is_simulated) LeaveOut(launches.back(), process, file);
    }
    return;
  }
  std::string_view function = range.name;
  if (function.ends_with("Config")) function.remove_suffix(6);  // ncclAllGatherConfig
  const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const NamedKind& kind) { return kind.name == function; });
  if (known == std::end(kKinds)) {
    if (!IsUnsupportedCall(range)) return;  // what creates communicators, and PyTorch's own ranges
    ++report_.files[file].calls_seen;
    report_.Drop(CallDropReason::kUnsupportedKind, file, 0,
                 fmt::format("{} at {} ns", range.name, range.start_ns));
    return;
  }
  ++report_.files[file].calls_seen;
  if (depth == 0) begin_launch(range.end_ns, false);
  Launch& launch = process.launches[launches.back()];
  ++(IsSendOrRecv(known->kind) ? launch.messages : launch.collectives);
  process.calls.push_back(
      {.kind = known->kind, .launch = launches.back(), .range = std::move(range)});
}

void NsysJob::LeaveOut(size_t launch, Process& process, uint32_t file) {
  const uint64_t left_out =
      std::erase_if(process.calls, [&](const Call& call) { return call.launch == launch; });
  simulated_ += left_out;
  report_.files[file].calls_seen -= left_out;
}

void NsysJob::AddKernel(const NsysKernel& kernel, uint32_t file) {
  ++kernels_;
  Process& process = processes_[{file, kernel.process}];
  const std::vector<size_t>& launches = process.launches_of[kernel.launch_thread];
  const auto after = std::upper_bound(
      launches.begin(), launches.end(), kernel.launch_ns,
      [&](int64_t at_ns, size_t launch) { return at_ns < process.launches[launch].begin_ns; });
  if (after == launches.begin() || process.launches[*std::prev(after)].end_ns < kernel.launch_ns) {
    ++kernels_without_call_;
    return;
  }
  const bool has_times =
      kernel.start_ns >= 0 && kernel.start_ns <= kernel.end_ns && kernel.end_ns <= kTimeNsMax;
  wrong_durations_.Count(!has_times);
  if (!has_times) return;
  Launch& launch = process.launches[*std::prev(after)];
  if (!launch.has_kernels) {
    launch.has_kernels = true;
    launch.stream = kernel.stream;
    launch.first_kernel_ns = kernel.start_ns;
    launch.last_kernel_end_ns = kernel.end_ns;
  }
  launch.first_kernel_ns = std::min(launch.first_kernel_ns, kernel.start_ns);
  launch.last_kernel_end_ns = std::max(launch.last_kernel_end_ns, kernel.end_ns);
}

std::string NsysJob::NameOf(const ProcessId& id) const {
  return fmt::format("process {:#x} of {}", id.second, report_.files[id.first].path);
}

std::optional<uint32_t> NsysJob::RankIn(const Process& process, const std::string& communicator,
                                        uint64_t thread) {
  const auto joined = process.ranks_of.find(communicator);
  if (joined == process.ranks_of.end()) return std::nullopt;
  const auto& ranks_of_thread = joined->second;
  // Any thread of a process that is one rank may make its calls, or end the communicator.
  std::set<uint32_t> ranks;
  for (const auto& [of_thread, joined_as] : ranks_of_thread) {
    ranks.insert(joined_as.begin(), joined_as.end());
  }
  if (ranks.size() == 1) return *ranks.begin();
  const auto at = ranks_of_thread.find(thread);
  if (at == ranks_of_thread.end() || at->second.size() != 1) return std::nullopt;
  return *at->second.begin();
}

std::optional<NsysJob::Drop> NsysJob::Place(const ProcessId& id, Process& process,
                                            const Call& call) {
  const NsysRange& range = call.range;
  if (!range.bytes) return Drop{CallDropReason::kSizesNotRecorded, {}};
  if (!range.communicator) {
    return Drop{CallDropReason::kAmbiguousCommunicator,
                "the ranges of this version of NCCL do not name the communicator"};
  }
  const std::string communicator = fmt::format("{:#x}", *range.communicator);
  const auto seen = communicators_.find(communicator);
  if (seen == communicators_.end()) {
    return Drop{
        CallDropReason::kAmbiguousCommunicator,
        splits_.contains(communicator)
            ? fmt::format("communicator {} is a split of {}, of which not all ranks were "
                          "captured",
                          communicator, splits_.at(communicator).parent)
        : process.unnamed_inits.empty()
            ? fmt::format("no ncclCommInitRank of communicator {} was captured", communicator)
            : fmt::format("which ncclCommInitRank is that of communicator {} is not recorded: it "
                          "was within a group, or not blocking",
                          communicator)};
  }
  const auto rank_in = RankIn(process, communicator, range.thread);
  if (!rank_in) {
    return Drop{CallDropReason::kUnknownRank,
                fmt::format("its thread is not one rank of communicator {}", communicator)};
  }
  std::string name = NameOf(id);
  if (separated_.contains(name)) name = RankOfProcess(name, *rank_in, communicator);
  const auto rank = placement_.rank_of_process.find(name);
  if (rank == placement_.rank_of_process.end()) return Drop{CallDropReason::kUnknownRank, name};
  const auto members = placement_.ranks_of_communicator.find(communicator);
  CapturedCall captured;
  TraceOperation& operation = captured.operation;
  operation.kind = call.kind;
  operation.communicator =
      job_.GroupOf(communicator, seen->second.size,
                   members == placement_.ranks_of_communicator.end() ? std::vector<uint32_t>()
                                                                     : members->second);
  operation.count = *range.bytes;
  operation.datatype = Datatype::kUint8;
  const bool is_message = IsSendOrRecv(call.kind);
  const int64_t other = is_message ? range.peer.value_or(-1) : range.root.value_or(0);
  if (other < 0 || other >= int64_t{kTraceRanksMax}) {
    return Drop{CallDropReason::kOutOfRange, fmt::format("its root or peer is {}", other)};
  }
  (is_message ? operation.peer : operation.root) = static_cast<uint32_t>(other);
  Launch& launch = process.launches[call.launch];
  // Groups have numbers of their own in a process, from 1 on.
  if (is_message && launch.is_group) operation.group = static_cast<uint32_t>(call.launch) + 1;
  SetTimes(launch, rank->second, operation);
  operation.source_file = id.first;
  captured.stated_bytes = *range.bytes > kOperationBytesMax ? 0 : *range.bytes;
  job_.Add(rank->second, std::move(captured));
  return std::nullopt;
}

void NsysJob::SetTimes(Launch& launch, uint32_t rank, TraceOperation& operation) {
  Timeline& timeline = timelines_[rank];
  if (launch.has_kernels) {
    if (!timeline.begin_ns) timeline.begin_ns = launch.first_kernel_ns;
    int64_t& free_ns =
        timeline.free_ns_of.try_emplace(launch.stream, *timeline.begin_ns).first->second;
    if (!launch.is_placed) {
      operation.compute_before_ps = SpanPs(free_ns, launch.first_kernel_ns);
    }
    free_ns = std::max(free_ns, launch.last_kernel_end_ns);
    // The export does not record how long each of several collectives took.
    if (launch.collectives == 0 || launch.collectives + launch.messages == 1) {
      operation.measured_ps = SpanPs(launch.first_kernel_ns, launch.last_kernel_end_ns);
    }
    timeline.last_stream = job_.StreamOf(rank, launch.stream);
  }
  launch.is_placed = true;
  operation.stream = timeline.last_stream;
}

void NsysJob::Assume() {
  wrong_durations_.Report(report_);
  if (kernels_ == kernels_without_call_) {
    report_.assumed.push_back(
        "Calls follow one another without gaps: the files have no kernels that they launched.");
  } else if (!options_.ignore_times) {
    report_.assumed.push_back(
        "What lies between two kernels of a stream, by the GPU's clock of its rank, is "
        "computation.");
    report_.assumed.push_back(
        "Measured durations are the kernels', in which they also wait for the slowest rank.");
  }
  if (simulated_ > 0) {
    report_.assumed.push_back(
        fmt::format("{} calls of groups that ended with ncclGroupSimulateEnd were not made and are "
                    "left out.",
                    simulated_));
  }
  if (kernels_without_call_ > 0) {
    report_.assumed.push_back(fmt::format(
        "{} of {} kernels of NCCL were not launched by a call (but by CUDA graphs, or by other "
        "threads): what they do beyond the captured calls is not in the trace.",
        kernels_without_call_, kernels_));
  }
}

std::optional<Trace> NsysJob::Take(Diagnostics& diagnostics) {
  JoinUnnamed();
  JoinSplits();
  separated_ = SeparateRanks(communicators_);
  placement_ = PlaceProcesses(communicators_, separated_.empty());
  report_.assumed.insert(report_.assumed.end(), placement_.assumed.begin(),
                         placement_.assumed.end());
  uint32_t rank_count = 0;
  for (const auto& [id, communicator] : communicators_) {
    rank_count = std::max(rank_count, communicator.size);
  }
  if (rank_count > 0) {
    job_.StateRankCount(rank_count);
    report_.assumed.push_back(
        fmt::format("The largest communicator, of {} ranks, is the job.", rank_count));
  }
  for (const auto& [process, rank] : placement_.rank_of_process) job_.AddRank(rank);
  Assume();
  for (auto& [id, process] : processes_) {
    for (const Call& call : process.calls) {
      const auto drop = Place(id, process, call);
      if (!drop) continue;
      report_.Drop(drop->reason, id.first, 0,
                   fmt::format("{} at {} ns{}{}", call.range.name, call.range.start_ns,
                               drop->detail.empty() ? "" : ": ", drop->detail));
    }
  }
  return BuildTrace(std::move(job_), options_, report_, diagnostics);
}

}  // namespace railyard
