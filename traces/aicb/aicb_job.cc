// SPDX-License-Identifier: GPL-2.0-only
#include "traces/aicb/aicb_job.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/divide_up.h"
#include "traces/trace/collective_blocks.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr std::string_view kGroupNames[] = {"tensor", "data", "expert", "expert_data", "all"};

class AicbTraceBuilder {
 public:
  AicbTraceBuilder(const std::vector<AicbCall>& calls, const AicbParallelism& parallelism,
                   ImportReport& report, Diagnostics& diagnostics)
      : calls_(calls), parallelism_(parallelism), report_(report), diagnostics_(diagnostics) {}

  std::optional<Trace> Run() {
    for (const AicbCall& call : calls_) Add(call);
    if (!has_calls_) return std::nullopt;
    Trace trace;
    trace.origin = "aicb";
    trace.rank_count = parallelism_.ranks;
    trace.source_files = {report_.files.front().path};
    trace.operations.resize(parallelism_.ranks);
    AddCommunicators(trace);
    const uint32_t program = trace.operations.AddProgram(std::move(program_));
    for (GlobalRank rank{0}; rank < parallelism_.ranks; ++rank) {
      trace.operations.SetProgram(rank, program);
    }
    report_.ranks_reconstructed = parallelism_.ranks - 1;
    report_.calls_reconstructed = report_.calls_imported() * report_.ranks_reconstructed;
    report_.reconstructed.push_back(fmt::format(
        "All {} ranks make the calls of the one that the file describes.", parallelism_.ranks));
    if (!CheckTrace(trace, trace.source_files.front(), diagnostics_)) return std::nullopt;
    return trace;
  }

 private:
  void Add(const AicbCall& call) {
    if (call.begins_iteration && has_calls_) begins_iteration_ = true;
    if (call.kind == CollectiveKind::kCompute) {
      AddComputation(call);
      return;
    }
    const uint32_t size = parallelism_.SizeOf(call.group);
    std::optional<CallDropReason> why;
    if (call.bytes == 0 || size == 1) why = CallDropReason::kZeroCount;
    if (call.bytes > kOperationBytesMax / size) why = CallDropReason::kOutOfRange;
    if (call.root >= size) why = CallDropReason::kOutOfRange;
    gap_ps_ = std::min(kDurationMaxPs, gap_ps_ + call.compute_before_ps);
    if (why) {
      report_.Drop(*why, 0, call.line,
                   size == 1 ? fmt::format("its {} group is one rank",
                                           kGroupNames[static_cast<size_t>(call.group)])
                             : fmt::format("{} bytes", call.bytes));
      return;
    }
    TraceOperation operation;
    operation.kind = call.kind;
    operation.communicator = NumberOf(call.group);
    // Calls count one of their blocks, the file all of them.
    operation.count = IsMadeOfBlocks(call.kind) ? DivideUp(call.bytes, size) : call.bytes;
    operation.datatype = Datatype::kUint8;
    operation.measured_ps = call.measured_ps;
    operation.root = call.root;
    operation.source_line = call.line;
    if (call.beside) {
      // The computation before the call comes first.
      if (gap_ps_ > 0) Append({.kind = CollectiveKind::kCompute});
      operation.stream = 1;
      operation.after = last_main_;
      program_.push_back(operation);
    } else {
      Append(operation);
      last_main_ = static_cast<uint32_t>(program_.size());
    }
    TakeIteration();
    has_calls_ = true;
    report_.Import(call.kind, 0, call.bytes);
  }

  void AddComputation(const AicbCall& call) {
    if (!call.beside) {
      gap_ps_ = std::min(kDurationMaxPs, gap_ps_ + call.compute_before_ps);
    } else if (call.compute_before_ps > 0) {
      program_.push_back({.kind = CollectiveKind::kCompute,
                          .stream = 1,
                          .compute_before_ps = call.compute_before_ps});
    }
  }

  // On the stream of computation, behind the gap before it.
  void Append(TraceOperation operation) {
    operation.compute_before_ps = std::exchange(gap_ps_, 0);
    program_.push_back(operation);
    last_main_ = static_cast<uint32_t>(program_.size());
  }

  void TakeIteration() {
    if (begins_iteration_) program_.back().begins_iteration = true;
    begins_iteration_ = false;
  }

  uint32_t NumberOf(AicbGroup group) {
    const auto at = std::find(groups_.begin(), groups_.end(), group);
    if (at == groups_.end()) groups_.push_back(group);
    return static_cast<uint32_t>(std::find(groups_.begin(), groups_.end(), group) -
                                 groups_.begin());
  }

  // Ranks of different groups share the program: its numbers stand for each rank's own.
  void AddCommunicators(Trace& trace) const {
    trace.communicators_of_rank.resize(parallelism_.ranks);
    for (const AicbGroup group : groups_) {
      std::map<GlobalRank, uint32_t> index_of;  // by the group's first rank
      for (GlobalRank rank{0}; rank < parallelism_.ranks; ++rank) {
        const GlobalRank first = parallelism_.MembersOf(group, rank).front();
        const auto [at, is_new] =
            index_of.try_emplace(first, static_cast<uint32_t>(trace.communicators.size()));
        if (is_new) {
          trace.communicators.push_back(
              {.name = fmt::format("{}{}", kGroupNames[static_cast<size_t>(group)],
                                   index_of.size() - 1),
               .ranks = parallelism_.MembersOf(group, rank)});
        }
        trace.communicators_of_rank[rank].push_back(at->second);
      }
    }
  }

  static constexpr int64_t kDurationMaxPs = int64_t{1} << 60;

  const std::vector<AicbCall>& calls_;
  const AicbParallelism& parallelism_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  std::vector<TraceOperation> program_;
  std::vector<AicbGroup> groups_;  // by their number in the program
  int64_t gap_ps_ = 0;
  uint32_t last_main_ =
      0;  // one more than the number of the last operation that computation follows
  bool begins_iteration_ = false;
  bool has_calls_ = false;
};

}  // namespace

std::string AicbParallelism::Problem() const {
  if (ranks == 0 || ranks > kTraceRanksMax) {
    return fmt::format("{} ranks are out of range (expected 1 to {})", ranks, kTraceRanksMax);
  }
  const uint64_t stage = uint64_t{tensor} * pipeline;
  if (stage == 0 || ranks % stage != 0) {
    return fmt::format(
        "{} ranks are not divided by {} tensor parallel ones and {} stages (expected a multiple "
        "of {})",
        ranks, tensor, pipeline, stage);
  }
  if (expert == 0 || data() % expert != 0) {
    return fmt::format("{} data parallel ranks are not divided by {} expert parallel ones", data(),
                       expert);
  }
  return {};
}

uint32_t AicbParallelism::SizeOf(AicbGroup group) const {
  switch (group) {
    case AicbGroup::kTensor:
      return tensor;
    case AicbGroup::kData:
      return data();
    case AicbGroup::kExpert:
      return expert;
    case AicbGroup::kExpertData:
      return data() / expert;
    case AicbGroup::kAll:
      return ranks;
  }
  return ranks;
}

std::vector<GlobalRank> AicbParallelism::MembersOf(AicbGroup group, GlobalRank rank) const {
  const uint32_t in_data = rank / tensor % data();
  uint32_t first = 0;
  uint32_t stride = 1;
  switch (group) {
    case AicbGroup::kTensor:
      first = rank - rank % tensor;
      break;
    case AicbGroup::kData:
      stride = tensor;
      first = rank - in_data * tensor;
      break;
    case AicbGroup::kExpert:
      stride = tensor;
      first = rank - in_data % expert * tensor;
      break;
    case AicbGroup::kExpertData:
      stride = tensor * expert;
      first = rank - in_data / expert * stride;
      break;
    case AicbGroup::kAll:
      break;
  }
  std::vector<GlobalRank> members;
  for (uint32_t i = 0; i < SizeOf(group); ++i) members.emplace_back(first + i * stride);
  return members;
}

std::optional<Trace> TraceOfAicb(const std::vector<AicbCall>& calls,
                                 const AicbParallelism& parallelism, ImportReport& report,
                                 Diagnostics& diagnostics) {
  return AicbTraceBuilder(calls, parallelism, report, diagnostics).Run();
}

}  // namespace railyard
