// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/checkpoint_times.h"

#include <algorithm>
#include <map>

#include "simulator/units/time_end.h"

namespace railyard {

int64_t SavedPs(const CheckpointedPart& part, uint64_t checkpoint, int64_t progress_ps) {
  const Job& job = part.job;
  int64_t saved_ps = progress_ps;
  std::vector<int64_t> ends_ps;
  for (const GlobalRank rank : job.parts[part.part].global_ranks) {
    const std::vector<uint32_t>& of_rank = part.places[job.operations.program_of_rank(rank)];
    if (of_rank.empty()) continue;
    const std::vector<JobOperation>& operations = job.operations[rank];
    const uint32_t first = checkpoint == 0 ? 0 : of_rank[checkpoint - 1];
    const uint32_t end = of_rank[checkpoint];
    std::map<uint32_t, int64_t> stream_ps;
    ends_ps.assign(end - first, progress_ps);
    for (uint32_t i = first; i < end; ++i) {
      const JobOperation& operation = operations[i];
      int64_t& of_stream_ps = stream_ps.try_emplace(operation.stream, progress_ps).first->second;
      if (operation.is_compute()) {
        const bool waits = operation.after != JobOperation::kNone && operation.after >= first;
        of_stream_ps = SumPs(std::max(of_stream_ps, waits ? ends_ps[operation.after - first] : 0),
                             operation.compute_before_ps);
      } else {
        of_stream_ps = part.times[job.CollectiveOf(rank, operation)].last_end_ps;
        if (of_stream_ps == kNeverPs) return kNeverPs;
      }
      ends_ps[i - first] = of_stream_ps;
    }
    saved_ps = std::max(saved_ps, ends_ps.back());
  }
  return saved_ps;
}

}  // namespace railyard
