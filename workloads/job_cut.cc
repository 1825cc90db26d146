// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job_cut.h"

#include <utility>
#include <vector>

namespace railyard {
namespace {

void CutProgram(uint64_t count, std::vector<JobOperation>& program,
                std::vector<uint32_t>& iteration_begins) {
  std::vector<uint32_t> number(program.size(), JobOperation::kNone);
  std::vector<JobOperation> kept;
  size_t kept_to_last_collective = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    JobOperation& operation = program[i];
    if (!operation.is_compute() && operation.collective >= count) continue;
    number[i] = static_cast<uint32_t>(kept.size());
    if (operation.after != JobOperation::kNone) operation.after = number[operation.after];
    kept.push_back(operation);
    if (!operation.is_compute()) kept_to_last_collective = kept.size();
  }
  kept.resize(kept_to_last_collective);
  kept.shrink_to_fit();
  // An iteration of which something is left begins with that.
  for (uint32_t& begin : iteration_begins) {
    while (begin < number.size() && number[begin] == JobOperation::kNone) ++begin;
    begin = begin < number.size() ? number[begin] : JobOperation::kNone;
  }
  std::erase_if(iteration_begins, [&](uint32_t begin) { return begin >= kept.size(); });
  program = std::move(kept);
}

}  // namespace

void KeepFirstCollectives(uint64_t count, Job& job) {
  if (count >= job.collectives.size()) return;
  job.collectives.resize(count);
  for (uint32_t i = 0; i < job.operations.program_count(); ++i) {
    CutProgram(count, job.operations.program(i), job.iteration_begins[i]);
  }
}

}  // namespace railyard
