// SPDX-License-Identifier: GPL-2.0-only
// Algorithms for collectives that are code, by name: those of this folder and those that a program
// around the library adds. A scenario chooses one with `workload { registered_algorithm: "NAME" }`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

struct AlgorithmRequest {
  CollectiveKind kind =
      CollectiveKind::kAllReduce;  // or AllGather, ReduceScatter, Broadcast, Reduce
  uint32_t rank_count = 0;
  uint32_t root = 0;  // of Broadcast and Reduce; 0 for the others
};

// Returns the steps of all ranks, or nullptr if the algorithm does not serve such collectives,
// which NCCL's choice then runs. It is called once per kind, number of ranks and root of a job, and
// its steps are checked before the run as those of a schedule file are.
using AlgorithmFactory =
    std::function<std::shared_ptr<const ExplicitAlgorithm>(const AlgorithmRequest&)>;

// Adds an algorithm, or replaces the one of the same name.
void RegisterAlgorithm(const std::string& name, AlgorithmFactory factory);

// Returns the names of all algorithms, sorted.
std::vector<std::string> RegisteredAlgorithms();

// Precondition: `name` is registered.
std::shared_ptr<const ExplicitAlgorithm> MakeAlgorithm(const std::string& name,
                                                       const AlgorithmRequest& request);

}  // namespace railyard
