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
  if (range.communicator && range.rank && range.rank_count && *range.rank >= 0 &&
      *range.rank < *range.rank_count && *range.rank_count <= kTraceRanksMax) {
    Communicator& communicator = communicators_[*range.communicator];
    communicator.size = static_cast<uint32_t>(*range.rank_count);
    communicator.process_of.try_emplace(static_cast<uint32_t>(*range.rank), id);
  }
  Process& process = processes_[id];
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
                           .file = file,
                           .group = group == process.group_of.end() ? 0 : group->second,
                           .range = std::move(range)});
}

bool NsysJob::NumberProcesses() {
  const Communicator* largest = nullptr;
  for (const auto& [number, communicator] : communicators_) {
    if (communicator.process_of.size() != communicator.size) continue;
    if (largest == nullptr || communicator.size > largest->size) largest = &communicator;
  }
  if (largest == nullptr) return false;
  for (const auto& [rank, process] : largest->process_of) rank_of_[process] = rank;
  report_.assumed.push_back(
      fmt::format("The largest communicator, of {} ranks, is the job.", largest->size));
  report_.assumed.push_back(
      "Calls follow one another without gaps: the ranges are the host's, not the GPU's.");
  return true;
}

std::optional<CallDropReason> NsysJob::Fill(const ProcessId& id, const Call& call,
                                            TraceOperation& operation, Trace& trace) {
  const NsysRange& range = call.range;
  if (!range.bytes || !range.communicator) return CallDropReason::kSizesNotRecorded;
  if (*range.bytes == 0) return CallDropReason::kZeroCount;
  if (!rank_of_.contains(id)) return CallDropReason::kUnknownRank;
  const auto at = communicators_.find(*range.communicator);
  if (at == communicators_.end()) return CallDropReason::kAmbiguousCommunicator;
  Communicator& communicator = at->second;
  if (communicator.process_of.size() != communicator.size) return CallDropReason::kRanksMissing;
  if (*range.bytes > kOperationBytesMax / communicator.size) return CallDropReason::kOutOfRange;
  const bool is_p2p = call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
  const int64_t other = is_p2p ? range.peer.value_or(-1) : range.root.value_or(0);
  if (other < 0 || other >= communicator.size) return CallDropReason::kOutOfRange;
  if (!communicator.index) {
    TraceCommunicator stated;
    stated.name = fmt::format("{:#x}", at->first);
    for (const auto& [rank, process] : communicator.process_of) {
      const auto number = rank_of_.find(process);
      if (number == rank_of_.end()) return CallDropReason::kUnknownRank;
      stated.ranks.push_back(number->second);
    }
    communicator.index = static_cast<uint32_t>(trace.communicators.size());
    trace.communicators.push_back(std::move(stated));
  }
  operation.kind = call.kind;
  operation.communicator = *communicator.index;
  operation.count = *range.bytes;
  operation.datatype = Datatype::kUint8;
  (is_p2p ? operation.peer : operation.root) = static_cast<uint32_t>(other);
  if (is_p2p) operation.group = call.group;
  operation.source_file = call.file;
  return std::nullopt;
}

void NsysJob::AddCalls(const ProcessId& id, const Process& process, Trace& trace) {
  for (const Call& call : process.calls) {
    TraceOperation operation;
    if (const auto why = Fill(id, call, operation, trace)) {
      report_.Drop(*why, call.file, 0,
                   fmt::format("{} at {} ns", call.range.name, call.range.start_ns));
      continue;
    }
    trace.operations[rank_of_.at(id)].push_back(operation);
    report_.Import(call.kind, call.file, *call.range.bytes);
  }
}

std::optional<Trace> NsysJob::Take(Diagnostics& diagnostics) {
  Trace trace;
  trace.origin = "nsys";
  NumberProcesses();
  trace.rank_count = static_cast<uint32_t>(rank_of_.size());
  for (const ImportedFile& file : report_.files) trace.source_files.push_back(file.path);
  trace.operations.resize(trace.rank_count);
  for (const auto& [id, process] : processes_) AddCalls(id, process, trace);
  if (report_.calls_imported() == 0) return std::nullopt;
  if (!CheckTrace(trace, trace.source_files.front(), diagnostics)) return std::nullopt;
  return trace;
}

}  // namespace railyard
