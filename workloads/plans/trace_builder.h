// SPDX-License-Identifier: GPL-2.0-only
// Builds a trace rank by rank. Ranks whose operations are equal share one program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

class TraceBuilder {
 public:
  explicit TraceBuilder(uint32_t rank_count);

  // Adds a communicator and returns its number.
  uint32_t AddCommunicator(std::string name, std::vector<GlobalRank> ranks);
  // Returns the number of the communicator of this kind and these ranks, in this order. The first
  // call for them adds it, named by its kind and its number among those of that kind.
  uint32_t FindCommunicator(const std::string& kind, std::vector<GlobalRank> ranks);
  // Sets the communicators to which the numbers in the rank's program refer
  // (Trace::communicators_of_rank).
  void SetCommunicators(GlobalRank rank, std::vector<uint32_t> communicators);
  // Sets the program of a rank. Must be called at most once per rank, in any order.
  void SetProgram(GlobalRank rank, std::vector<TraceOperation> operations);
  // Sets the program of all these ranks, without looking for another rank with an equal program.
  void SetProgram(const std::vector<GlobalRank>& ranks, std::vector<TraceOperation> operations);
  Trace Take(std::string origin);

 private:
  Trace trace_;
  std::map<std::pair<std::string, std::vector<GlobalRank>>, uint32_t> found_;
  std::map<std::string, uint32_t> found_of_kind_;  // how many
  std::unordered_multimap<uint64_t, GlobalRank> first_rank_by_hash_;
};

}  // namespace railyard
