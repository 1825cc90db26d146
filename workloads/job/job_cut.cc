// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_cut.h"

#include <map>
#include <utility>
#include <vector>

namespace railyard {
namespace {

// Removes the calls that are not kept, and everything after the last kept call.
void CutProgram(const std::vector<bool>& is_kept, std::vector<JobOperation>& program,
                std::vector<uint32_t>& iteration_begins) {
  std::vector<uint32_t> number(program.size(), JobOperation::kNone);
  std::vector<JobOperation> kept;
  size_t kept_to_last_call = 0;
  uint32_t calls = 0;
  for (size_t i = 0; i < program.size(); ++i) {
    JobOperation operation = program[i];
    if (!operation.is_compute() && !is_kept[operation.call]) continue;
    number[i] = static_cast<uint32_t>(kept.size());
    if (operation.after != JobOperation::kNone) operation.after = number[operation.after];
    if (!operation.is_compute()) operation.call = calls++;
    kept.push_back(operation);
    if (!operation.is_compute()) kept_to_last_call = kept.size();
  }
  kept.resize(kept_to_last_call);
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
  const RankPrograms<JobOperation> whole = std::move(job.operations);
  const std::vector<std::vector<uint32_t>> begins = std::move(job.iteration_begins);
  job.operations = {};
  job.operations.resize(job.rank_count);
  job.iteration_begins.assign(job.operations.program_count(), {});
  // Ranks that share operations may keep different ones of them.
  std::map<std::pair<uint32_t, std::vector<bool>>, uint32_t> numbers;
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    const uint32_t program = whole.program_of_rank(rank);
    std::vector<bool> is_kept;
    for (const CollectiveIndex collective : job.called[rank]) is_kept.push_back(collective < count);
    const auto [it, is_new] = numbers.try_emplace({program, std::move(is_kept)});
    if (is_new) {
      std::vector<JobOperation> operations = whole.program(program);
      job.iteration_begins.push_back(begins[program]);
      CutProgram(it->first.second, operations, job.iteration_begins.back());
      it->second = job.operations.AddProgram(std::move(operations));
    }
    job.operations.SetProgram(rank, it->second);
  }
  for (uint32_t list = 0; list < job.called.program_count(); ++list) {
    std::erase_if(job.called.program(list), [&](CollectiveIndex id) { return id >= count; });
  }
}

}  // namespace railyard
