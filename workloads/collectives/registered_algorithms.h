// SPDX-License-Identifier: GPL-2.0-only
// Registers algorithms for collectives that are written as code, by name: those of this folder and
// those that a program around the library adds. A scenario chooses one with `workload {
// registered_algorithm: "NAME" }`.
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
      CollectiveKind::kAllReduce;  // or AllGather, ReduceScatter, AllToAll, Broadcast, Reduce
  uint32_t rank_count = 0;
  RankIndex root{0};  // for Broadcast and Reduce; 0 for the others
};

// Returns the steps of all ranks, or nullptr if the algorithm does not support such collectives;
// NCCL's choice then applies. It is called once per kind, number of ranks and root of a job, and
// its steps are checked before the run like those of a schedule file.
using AlgorithmFactory =
    std::function<std::shared_ptr<const ExplicitAlgorithm>(const AlgorithmRequest&)>;

// Adds an algorithm, or replaces the algorithm of the same name.
void RegisterAlgorithm(const std::string& name, AlgorithmFactory factory);

// Returns the names of all algorithms, sorted.
std::vector<std::string> RegisteredAlgorithms();

// Returns the result of that algorithm's factory. Precondition: `name` is registered.
std::shared_ptr<const ExplicitAlgorithm> MakeAlgorithm(const std::string& name,
                                                       const AlgorithmRequest& request);

}  // namespace railyard
