// SPDX-License-Identifier: GPL-2.0-only
#include "traces/transform/trace_merge.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

// Returns the largest number of iterations of any rank; ranks without operations do not count.
uint64_t IterationsOf(const Trace& trace) {
  uint64_t iterations = 0;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    const auto begins =
        std::count_if(trace.operations[rank].begin(), trace.operations[rank].end(),
                      [](const TraceOperation& operation) { return operation.begins_iteration; });
    iterations = std::max(iterations, static_cast<uint64_t>(begins));
  }
  return iterations;
}

void Append(const Trace& job, size_t number, bool keeps_iterations, Trace& merged) {
  const uint32_t first_rank = merged.rank_count;
  const auto first_file = static_cast<uint32_t>(merged.source_files.size());
  const auto first_communicator = static_cast<uint32_t>(merged.communicators.size());
  merged.rank_count += job.rank_count;
  merged.operations.resize(merged.rank_count);
  merged.communicators_of_rank.resize(merged.rank_count);
  merged.source_files.insert(merged.source_files.end(), job.source_files.begin(),
                             job.source_files.end());
  std::vector<uint32_t> own;
  for (TraceCommunicator communicator : job.communicators) {
    communicator.name = fmt::format("{}/{}", number, communicator.name);
    for (GlobalRank& rank : communicator.ranks) rank = GlobalRank{rank + first_rank};
    own.push_back(static_cast<uint32_t>(merged.communicators.size()));
    merged.communicators.push_back(std::move(communicator));
  }
  std::vector<uint32_t> program_of(job.operations.program_count(), UINT32_MAX);
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    uint32_t& program = program_of[job.operations.program_of_rank(rank)];
    if (program == UINT32_MAX) {
      std::vector<TraceOperation> operations = job.operations[rank];
      for (TraceOperation& operation : operations) {
        operation.source_file += first_file;
        operation.begins_iteration &= keeps_iterations;
      }
      program = merged.operations.AddProgram(std::move(operations));
    }
    merged.operations.SetProgram(GlobalRank{first_rank + rank}, program);
    std::vector<uint32_t>& numbers = merged.communicators_of_rank[first_rank + rank];
    numbers = job.NumbersAreIndices(rank) ? own : job.communicators_of_rank[rank];
    if (!job.NumbersAreIndices(rank)) {
      for (uint32_t& index : numbers) index += first_communicator;
    }
  }
}

}  // namespace

std::optional<Trace> MergeTraces(const std::vector<Trace>& traces, const std::string& file,
                                 Diagnostics& diagnostics) {
  std::set<uint64_t> iterations;
  std::set<std::string> origins;
  std::set<std::string> versions;
  uint64_t ranks = 0;
  for (const Trace& trace : traces) {
    iterations.insert(IterationsOf(trace));
    origins.insert(trace.origin);
    versions.insert(trace.nccl_version);
    ranks += trace.rank_count;
  }
  if (ranks > kTraceRanksMax) {
    diagnostics.Error(
        {.file = file}, "",
        fmt::format("{} ranks are too many (expected at most {})", ranks, kTraceRanksMax));
    return std::nullopt;
  }
  Trace merged;
  merged.origin = origins.size() == 1 ? *origins.begin() : "merged";
  if (versions.size() == 1) merged.nccl_version = *versions.begin();
  for (size_t i = 0; i < traces.size(); ++i) Append(traces[i], i, iterations.size() == 1, merged);
  if (!CheckTrace(merged, file, diagnostics)) return std::nullopt;
  return merged;
}

Trace AnonymizeTrace(Trace trace) {
  for (size_t i = 0; i < trace.communicators.size(); ++i) {
    trace.communicators[i].name = fmt::format("comm{}", i);
  }
  trace.source_files.clear();
  trace.file.clear();
  for (uint32_t program = 0; program < trace.operations.program_count(); ++program) {
    for (TraceOperation& operation : trace.operations.program(program)) {
      operation.source_file = 0;
      operation.source_line = 0;
    }
  }
  return trace;
}

}  // namespace railyard
