// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_job.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

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

}  // namespace

void NsysJob::Add(NsysRange&& range, uint32_t file) {
  const ProcessId id{file, range.process};
  Process& process = processes_[id];
  if (range.communicator && range.rank && range.rank_count && *range.rank >= 0 &&
      *range.rank < *range.rank_count && *range.rank_count <= kTraceRanksMax) {
    const std::string name = fmt::format("{:#x}", *range.communicator);
    const auto rank = static_cast<uint32_t>(*range.rank);
    SeenCommunicator& communicator = communicators_[name];
    communicator.size = std::max(communicator.size, static_cast<uint32_t>(*range.rank_count));
    communicator.process_of_rank.try_emplace(rank, NameOf(id));
    process.ranks_of[name][range.thread].insert(rank);
  }
  if (range.name == "ncclGroupStart") {
    if (process.depth_of[range.thread]++ == 0) process.group_of[range.thread] = ++process.groups;
    return;
  }
  if (range.name == "ncclGroupEnd") {
    uint32_t& depth = process.depth_of[range.thread];
    if (depth > 0 && --depth == 0) process.group_of.erase(range.thread);
    return;
  }
  const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const NamedKind& kind) { return kind.name == range.name; });
  if (known == std::end(kKinds)) return;  // what creates communicators, and PyTorch's own ranges
  ++report_.files[file].calls_seen;
  const auto group = process.group_of.find(range.thread);
  process.calls.push_back({.kind = known->kind,
                           .group = group == process.group_of.end() ? 0 : group->second,
                           .range = std::move(range)});
}

std::string NsysJob::NameOf(const ProcessId& id) const {
  return fmt::format("process {:#x} of {}", id.second, report_.files[id.first].path);
}

std::optional<uint32_t> NsysJob::RankIn(const Process& process, const std::string& communicator,
                                        uint64_t thread) {
  const auto joined = process.ranks_of.find(communicator);
  if (joined == process.ranks_of.end()) return std::nullopt;
  const auto& ranks_of_thread = joined->second;
  // Any thread of a process that is one rank may make its calls.
  const auto at =
      ranks_of_thread.size() == 1 ? ranks_of_thread.begin() : ranks_of_thread.find(thread);
  if (at == ranks_of_thread.end() || at->second.size() != 1) return std::nullopt;
  return *at->second.begin();
}

std::optional<NsysJob::Drop> NsysJob::Place(const ProcessId& id, const Process& process,
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
    return Drop{CallDropReason::kAmbiguousCommunicator,
                fmt::format("no ncclCommInitRank of communicator {} was captured", communicator)};
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
  if (is_message) operation.group = call.group;
  operation.source_file = id.first;
  captured.stated_bytes = *range.bytes > kOperationBytesMax ? 0 : *range.bytes;
  job_.Add(rank->second, std::move(captured));
  return std::nullopt;
}

std::optional<Trace> NsysJob::Take(Diagnostics& diagnostics) {
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
  report_.assumed.push_back(
      "Calls follow one another without gaps: the ranges are the host's, not the GPU's.");
  for (const auto& [id, process] : processes_) {
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
