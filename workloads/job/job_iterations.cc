// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_iterations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

namespace railyard {
namespace {

class Iterations {
 public:
  Iterations(const Job& job, PartIndex part) : job_(job) {
    for (const GlobalRank rank : job.parts[part].global_ranks) {
      const uint32_t program = job.operations.program_of_rank(rank);
      auto [it, is_new] = calls_.try_emplace(program);
      if (!is_new) continue;
      Calls& calls = it->second;
      calls.rank = rank;
      calls.operations = job.operations.program(program);
      calls.indices.reserve(calls.operations.size());
      for (uint32_t i = 0; i < calls.operations.size(); ++i) {
        if (!calls.operations[i].is_compute()) calls.indices.push_back(i);
      }
      if (calls.size() == 0) continue;
      count_ = std::gcd(count_, calls.size() / PeriodOf(calls));
    }
  }

  IterationBegins Begins() const {
    IterationBegins begins{.count = std::max<uint64_t>(1, count_), .of_program = {}};
    begins.of_program.resize(job_.operations.program_count());
    for (const auto& [program, calls] : calls_) {
      const size_t each = calls.size() / begins.count;
      for (uint64_t i = 0; i < begins.count && each > 0; ++i) {
        begins.of_program[program].push_back(i == 0 ? 0 : calls.indices[i * each]);
      }
    }
    return begins;
  }

 private:
  // The calls of a program, without computation. They are equal for all of its ranks, so the first
  // one's represent all.
  struct Calls {
    GlobalRank rank{};
    std::span<const JobOperation> operations;
    std::vector<uint32_t> indices;  // into them
    size_t size() const { return indices.size(); }
    const JobOperation& operator[](size_t i) const { return operations[indices[i]]; }
  };

  std::tuple<CollectiveKind, uint32_t, uint32_t, bool, uint64_t> ShapeOf(const Calls& calls,
                                                                         size_t i) const {
    const JobOperation& call = calls[i];
    const JobCollective& c = job_.collectives[job_.CollectiveOf(calls.rank, call)];
    return {c.kind, call.communicator, call.stream, c.is_all_to_all_v,
            c.kind == CollectiveKind::kSend ? 0 : c.bytes};
  }

  // The shortest length such that the calls are one sequence of that length again and again: from
  // the longest proper prefix that is a suffix too (Knuth, Morris, Pratt, SIAM J. Comput. 1977).
  size_t PeriodOf(const Calls& calls) const {
    std::vector<uint32_t> border(calls.size());
    for (size_t i = 1; i < calls.size(); ++i) {
      uint32_t length = border[i - 1];
      const auto shape = ShapeOf(calls, i);
      while (length > 0 && shape != ShapeOf(calls, length)) length = border[length - 1];
      border[i] = length + (shape == ShapeOf(calls, length) ? 1 : 0);
    }
    const size_t period = calls.size() - border.back();
    return calls.size() % period == 0 ? period : calls.size();
  }

  const Job& job_;
  std::map<uint32_t, Calls> calls_;  // by program
  uint64_t count_ = 0;
};

// Returns the iterations that the trace states.
IterationBegins StatedIterations(const Job& job, PartIndex part) {
  IterationBegins begins{.count = UINT64_MAX, .of_program = {}};
  begins.of_program.resize(job.operations.program_count());
  for (const GlobalRank rank : job.parts[part].global_ranks) {
    const uint32_t program = job.operations.program_of_rank(rank);
    const std::vector<uint32_t>& stated = job.iteration_begins[program];
    std::vector<uint32_t>& of_program = begins.of_program[program];
    of_program = {0};
    of_program.insert(of_program.end(), stated.begin(), stated.end());
    if (job.operations.program(program).empty()) continue;
    begins.count = std::min<uint64_t>(begins.count, of_program.size());
  }
  return begins;
}

}  // namespace

IterationBegins FindIterations(const Job& job, PartIndex part) {
  const auto& ranks = job.parts[part].global_ranks;
  const bool is_stated = std::any_of(ranks.begin(), ranks.end(), [&](GlobalRank rank) {
    return !job.iteration_begins[job.operations.program_of_rank(rank)].empty();
  });
  return is_stated ? StatedIterations(job, part) : Iterations(job, part).Begins();
}

}  // namespace railyard
