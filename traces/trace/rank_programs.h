// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/units/job_ids.h"

namespace railyard {

// Holds the program of each rank of a job, i.e. its operations in the order in which it enqueues
// them. Ranks with equal operations share one program, so that a long job of many alike ranks stays
// small.
template <typename Operation>
class RankPrograms {
 public:
  using Program = std::vector<Operation>;

  // Changes the number of ranks; new ranks have empty programs.
  void resize(size_t rank_count) {
    while (program_of_rank_.size() < rank_count) {
      program_of_rank_.push_back(AddProgram({}));
    }
    program_of_rank_.resize(rank_count);
  }
  size_t size() const { return program_of_rank_.size(); }  // ranks
  const Program& operator[](GlobalRank rank) const { return programs_[program_of_rank_[rank]]; }
  // Returns the rank's program; a change applies to all ranks that share it.
  Program& operator[](GlobalRank rank) { return programs_[program_of_rank_[rank]]; }

  // Returns the number of programs, including those that no rank has.
  uint32_t program_count() const { return static_cast<uint32_t>(programs_.size()); }
  const Program& program(uint32_t index) const { return programs_[index]; }
  Program& program(uint32_t index) { return programs_[index]; }
  uint32_t program_of_rank(GlobalRank rank) const { return program_of_rank_[rank]; }
  uint32_t AddProgram(Program program) {
    programs_.push_back(std::move(program));
    return program_count() - 1;
  }
  void SetProgram(GlobalRank rank, uint32_t program) { program_of_rank_[rank] = program; }
  void SwapPrograms(GlobalRank a, GlobalRank b) {
    std::swap(program_of_rank_[a], program_of_rank_[b]);
  }
  // Returns the ranks that run each program, in order.
  std::vector<std::vector<GlobalRank>> RanksOfPrograms() const {
    std::vector<std::vector<GlobalRank>> ranks(programs_.size());
    for (GlobalRank rank{0}; rank < program_of_rank_.size(); ++rank) {
      ranks[program_of_rank_[rank]].push_back(rank);
    }
    return ranks;
  }
  // Returns the number of operations of all ranks.
  uint64_t OperationCount() const {
    uint64_t count = 0;
    for (const uint32_t program : program_of_rank_) count += programs_[program].size();
    return count;
  }

 private:
  std::vector<Program> programs_;
  std::vector<uint32_t> program_of_rank_;
};

}  // namespace railyard
