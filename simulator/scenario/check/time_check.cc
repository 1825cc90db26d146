// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/time_check.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/schema/workload_source.h"
#include "simulator/units/time_end.h"
#include "simulator/units/units.h"

namespace railyard {

int64_t LeastTimePs(const Job& job, PartIndex part) {
  const int64_t start_ps = job.parts[part].start_ps;
  int64_t least_ps = start_ps;
  std::set<uint32_t> seen;  // programs, which ranks share
  std::vector<int64_t> of_stream;
  for (const GlobalRank rank : job.parts[part].global_ranks) {
    if (!seen.insert(job.operations.program_of_rank(rank)).second) continue;
    of_stream.clear();
    for (const JobOperation& operation : job.operations[rank]) {
      if (operation.stream >= of_stream.size()) of_stream.resize(operation.stream + 1, start_ps);
      int64_t& ps = of_stream[operation.stream];
      ps = SumPs(ps, operation.compute_before_ps);
      least_ps = std::max(least_ps, ps);
    }
  }
  return least_ps;
}

void CheckTimes(const ProtoCursor& scenario, const Job& job, Diagnostics& diagnostics) {
  for (PartIndex part{}; part < job.parts.size(); ++part) {
    if (LeastTimePs(job, part) <= kTimeEndPs) continue;
    const ProtoCursor workload = WorkloadOfPart(scenario, part);
    workload.Error(
        diagnostics, WorkloadSourceOf(workload),
        fmt::format("a rank computes for longer than simulated time lasts (expected less "
                    "than {} in all)",
                    FormatDuration(kTimeEndPs)));
  }
}

}  // namespace railyard
