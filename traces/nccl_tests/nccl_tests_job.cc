// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_job.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/number.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

struct NamedType {
  std::string_view name;
  Datatype type;
};
// nccl-tests and rccl-tests differ in their names of 8-bit floats.
constexpr NamedType kTypes[] = {
    {"int8", Datatype::kInt8},         {"uint8", Datatype::kUint8},
    {"int32", Datatype::kInt32},       {"uint32", Datatype::kUint32},
    {"int64", Datatype::kInt64},       {"uint64", Datatype::kUint64},
    {"half", Datatype::kFloat16},      {"float", Datatype::kFloat32},
    {"double", Datatype::kFloat64},    {"bfloat16", Datatype::kBfloat16},
    {"f8e4m3", Datatype::kFloat8E4M3}, {"fp8_e4m3", Datatype::kFloat8E4M3},
    {"f8e5m2", Datatype::kFloat8E5M2}, {"fp8_e5m2", Datatype::kFloat8E5M2}};

CollectiveKind KindOf(NcclTest test) {
  switch (test) {
    case NcclTest::kAllGather:
      return CollectiveKind::kAllGather;
    case NcclTest::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case NcclTest::kBroadcast:
      return CollectiveKind::kBroadcast;
    case NcclTest::kReduce:
      return CollectiveKind::kReduce;
    case NcclTest::kAllToAll:
      return CollectiveKind::kAllToAll;
    case NcclTest::kGather:
      return CollectiveKind::kGather;
    case NcclTest::kScatter:
      return CollectiveKind::kScatter;
    case NcclTest::kSendRecv:
      return CollectiveKind::kSend;
    default:
      return CollectiveKind::kAllReduce;
  }
}

// Returns why the row is no call that can be replayed, and its detail; else fills the operation.
std::optional<std::pair<CallDropReason, std::string>> OperationOf(const NcclTestsTable& table,
                                                                  const NcclTestsCall& call,
                                                                  TraceOperation& operation) {
  if (!table.test) {
    return std::pair(CallDropReason::kUnnamedOperation, "the output does not name its test");
  }
  if (*table.test == NcclTest::kUnsupported) {
    return std::pair(CallDropReason::kUnsupportedKind, "of no collective of NCCL");
  }
  if (table.ranks < 2 || table.ranks > kTraceRanksMax) {
    return std::pair(CallDropReason::kRanksMissing,
                     fmt::format("its table has {} ranks", table.ranks));
  }
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const NamedType& known) { return known.name == call.type; });
  if (type == std::end(kTypes)) {
    return std::pair(CallDropReason::kUnknownDatatype, std::string(call.type.substr(0, 40)));
  }
  if (call.count == 0) return std::pair(CallDropReason::kZeroCount, std::string());
  operation.kind = KindOf(*table.test);
  operation.count = call.count;
  operation.datatype = type->type;
  operation.in_place = call.in_place && CopiesWithinRank(operation.kind);
  operation.measured_ps = call.measured_ps;
  operation.source_file = call.file;
  operation.source_line = static_cast<uint32_t>(std::min<uint64_t>(call.line, UINT32_MAX));
  if (call.bytes > kOperationBytesMax || call.count > kOperationBytesMax) {
    return std::pair(CallDropReason::kOutOfRange, fmt::format("{} bytes", call.bytes));
  }
  if (OperationBytes(operation, table.ranks) != call.bytes) {
    return std::pair(CallDropReason::kMalformedRecord,
                     fmt::format("{} bytes are not those of {} elements on {} ranks", call.bytes,
                                 call.count, table.ranks));
  }
  if (!HasRoot(KindOf(*table.test))) return std::nullopt;
  if (!ParseNumber(call.root, operation.root) || operation.root >= table.ranks) {
    return std::pair(CallDropReason::kOutOfRange, fmt::format("root {}", call.root.substr(0, 40)));
  }
  return std::nullopt;
}

}  // namespace

void NcclTestsJob::Add(const NcclTestsTable& table, const NcclTestsCall& call) {
  PlacedCall placed;
  if (auto defect = OperationOf(table, call, placed.operation)) {
    report_.Drop(defect->first, call.file, call.line, std::move(defect->second));
    return;
  }
  placed.test = *table.test;
  placed.ranks = table.ranks;
  if (placed.test == NcclTest::kSendRecv) {
    send_count_ += placed.ranks;
    if (send_count_ > kSendsMax) {
      report_.Drop(CallDropReason::kOutOfRange, call.file, call.line,
                   fmt::format("more than {} Sends of all ranks", kSendsMax));
      return;
    }
  }
  rank_count_ = std::max(rank_count_, table.ranks);
  placed.bytes = call.bytes;
  calls_.push_back(placed);
}

// Ranks share their program, but for the peers of Sends: each rank sends to the next and receives
// from the one before (src/sendrecv.cu of nccl-tests).
void NcclTestsJob::AddProgramsOfRanks(Trace& trace) const {
  std::map<uint32_t, uint32_t> communicator_of;  // by number of ranks
  for (const PlacedCall& call : calls_) communicator_of.try_emplace(call.ranks, 0);
  for (auto& [ranks, number] : communicator_of) {
    number = static_cast<uint32_t>(trace.communicators.size());
    TraceCommunicator& communicator = trace.communicators.emplace_back();
    communicator.name = fmt::format("{} ranks", ranks);
    for (GlobalRank rank{0}; rank < ranks; ++rank) communicator.ranks.push_back(rank);
  }
  const auto program_of = [&](GlobalRank rank) {
    std::vector<TraceOperation> program;
    uint32_t groups = 0;
    for (const PlacedCall& call : calls_) {
      if (rank >= call.ranks) continue;
      TraceOperation operation = call.operation;
      operation.communicator = communicator_of.at(call.ranks);
      if (call.test == NcclTest::kSendRecv) {
        operation.group = ++groups;
        operation.peer = (rank + 1) % call.ranks;
        program.push_back(operation);
        operation.kind = CollectiveKind::kRecv;
        operation.peer = (rank + call.ranks - 1) % call.ranks;
      }
      program.push_back(operation);
    }
    return program;
  };
  // The first rank that is in as many tables as this one.
  std::map<uint32_t, uint32_t> program_by_bound;
  for (GlobalRank rank{0}; rank < rank_count_; ++rank) {
    if (send_count_ > 0) {
      trace.operations[rank] = program_of(rank);
      continue;
    }
    const uint32_t bound = communicator_of.upper_bound(rank)->first;
    const auto [at, is_new] = program_by_bound.try_emplace(bound, 0);
    if (is_new) at->second = trace.operations.AddProgram(program_of(rank));
    trace.operations.SetProgram(rank, at->second);
  }
}

std::optional<Trace> NcclTestsJob::Finish(Diagnostics& diagnostics) {
  if (calls_.empty() || diagnostics.HasErrors()) return std::nullopt;
  Trace trace;
  trace.origin = "nccl-tests";
  trace.nccl_version = report_.nccl_version;
  trace.rank_count = rank_count_;
  for (const ImportedFile& file : report_.files) trace.source_files.push_back(file.path);
  trace.operations.resize(rank_count_);
  AddProgramsOfRanks(trace);
  if (!CheckTrace(trace, report_.files.front().path, diagnostics)) return std::nullopt;
  for (const PlacedCall& call : calls_) {
    report_.Import(call.operation.kind, call.operation.source_file, call.bytes);
  }
  return trace;
}

}  // namespace railyard
