// SPDX-License-Identifier: GPL-2.0-only
// Simulates a run on several cores; the result equals that of one core. Each shard of the fabric is
// simulated by a process (shard_process.h) because ns-3 has one simulator per process.
#pragma once

#include <cstdint>
#include <string>

#include "analysis/result/run_result.h"
#include "simulator/run/run_monitor.h"
#include "simulator/run/run_options.h"
#include "simulator/run/shard_process.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// Returns why a run of the scenario cannot be divided, as far as its settings determine that; empty
// if it can.
std::string WhyNotDivided(const Scenario& scenario, const RunOptions& options);

class DividedRun {
 public:
  // The fabric must be that of the run and outlive this.
  DividedRun(const FabricGraph& graph, uint32_t shards) : map_(DivideIntoShards(graph, shards)) {}

  // Simulates the run and adds the results of the processes to its parts. Returns why it had to be
  // given up, in which case the parts must not be used; empty if it was not. Throws
  // EnvironmentError if a process fails.
  std::string Run(const PreparedRun& run, RunMonitor& monitor);

  // These return the totals of all processes.
  double cpu_seconds() const { return cpu_seconds_; }
  uint64_t peak_rss_bytes() const { return peak_rss_bytes_; }
  // Returns how the run was divided. Valid after Run() has returned an empty text.
  const DivisionResult& division() const { return division_; }

 private:
  std::string Absorb(const PreparedRun& run, std::vector<ShardOutcome> outcomes);
  DivisionResult DivisionOf(const FabricGraph& graph,
                            const std::vector<ShardOutcome>& outcomes) const;

  ShardMap map_;
  double cpu_seconds_ = 0;
  uint64_t peak_rss_bytes_ = 0;
  DivisionResult division_;
};

}  // namespace railyard
