// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job_cut.h"

#include <vector>

namespace railyard {

void KeepFirstCollectives(uint64_t count, Job& job) {
  if (count >= job.collectives.size()) return;
  job.collectives.resize(count);
  for (uint32_t i = 0; i < job.operations.program_count(); ++i) {
    std::vector<JobOperation>& program = job.operations.program(i);
    std::erase_if(program,
                  [count](const JobOperation& operation) { return operation.collective >= count; });
    program.shrink_to_fit();
  }
}

}  // namespace railyard
