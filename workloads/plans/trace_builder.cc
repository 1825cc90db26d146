// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/trace_builder.h"

#include <utility>

#include <fmt/format.h>

namespace railyard {
namespace {

// FNV-1a's step on whole words; equal lists have equal hashes, others are compared.
uint64_t HashOf(const std::vector<TraceOperation>& operations) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (const TraceOperation& operation : operations) {
    add(static_cast<uint64_t>(operation.kind));
    add(uint64_t{operation.communicator} << 32 | operation.stream);
    add(operation.count);
    add(uint64_t{operation.peer} << 32 | operation.group);
    add(static_cast<uint64_t>(operation.compute_before_ps));
  }
  return hash;
}

}  // namespace

TraceBuilder::TraceBuilder(uint32_t rank_count) {
  trace_.rank_count = rank_count;
  trace_.operations.resize(rank_count);
}

uint32_t TraceBuilder::AddCommunicator(std::string name, std::vector<GlobalRank> ranks) {
  trace_.communicators.push_back({.name = std::move(name), .ranks = std::move(ranks)});
  return static_cast<uint32_t>(trace_.communicators.size()) - 1;
}

uint32_t TraceBuilder::FindCommunicator(const std::string& kind, std::vector<GlobalRank> ranks) {
  const auto [it, is_new] = found_.try_emplace({kind, ranks}, 0);
  if (is_new) {
    uint32_t& of_kind = found_of_kind_[kind];
    it->second = AddCommunicator(fmt::format("{} {}", kind, of_kind++), std::move(ranks));
  }
  return it->second;
}

void TraceBuilder::SetCommunicators(GlobalRank rank, std::vector<uint32_t> communicators) {
  trace_.communicators_of_rank.resize(trace_.rank_count);
  trace_.communicators_of_rank[rank] = std::move(communicators);
}

void TraceBuilder::SetProgram(GlobalRank rank, std::vector<TraceOperation> operations) {
  const uint64_t hash = HashOf(operations);
  const auto [first, last] = first_rank_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (trace_.operations[it->second] == operations) {
      trace_.operations.SetProgram(rank, trace_.operations.program_of_rank(it->second));
      return;
    }
  }
  trace_.operations[rank] = std::move(operations);
  first_rank_by_hash_.emplace(hash, rank);
}

void TraceBuilder::SetProgram(const std::vector<GlobalRank>& ranks,
                              std::vector<TraceOperation> operations) {
  if (ranks.empty()) return;
  trace_.operations[ranks.front()] = std::move(operations);
  for (const GlobalRank rank : ranks) {
    trace_.operations.SetProgram(rank, trace_.operations.program_of_rank(ranks.front()));
  }
}

Trace TraceBuilder::Take(std::string origin) {
  trace_.origin = std::move(origin);
  return std::move(trace_);
}

}  // namespace railyard
