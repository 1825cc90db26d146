// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/program_order.h"

#include <unordered_map>

namespace railyard {

ProgramOrder::ProgramOrder(const Job& job)
    : job_(job), links_(job.operations.program_count()), half_released_(job.rank_count) {
  for (uint32_t program = 0; program < links_.size(); ++program) {
    const std::vector<JobOperation>& operations = job.operations.program(program);
    std::vector<Links>& links = links_[program];
    links.resize(operations.size());
    std::unordered_map<uint32_t, uint32_t> last_in_stream;
    std::unordered_map<uint32_t, uint32_t> last_in_communicator;
    for (uint32_t index = 0; index < operations.size(); ++index) {
      const JobOperation& operation = operations[index];
      const uint32_t communicator = job.collectives[operation.collective].communicator;
      const auto [in_stream, first_of_stream] = last_in_stream.try_emplace(operation.stream, index);
      const auto [in_communicator, first_of_communicator] =
          last_in_communicator.try_emplace(communicator, index);
      links[index].first_of_stream = first_of_stream;
      if (!first_of_stream) {
        links[in_stream->second].next_in_stream = index;
        ++links[index].waits_for;
      }
      if (!first_of_communicator &&
          (first_of_stream || in_communicator->second != in_stream->second)) {
        links[in_communicator->second].next_in_communicator = index;
        ++links[index].waits_for;
      }
      in_stream->second = index;
      in_communicator->second = index;
    }
  }
}

void ProgramOrder::EndTrial(bool keep) {
  in_trial_ = false;
  // The first copy of a rank's is that from before the trial.
  if (!keep) {
    for (auto it = before_trial_.rbegin(); it != before_trial_.rend(); ++it) {
      half_released_[it->first] = std::move(it->second);
    }
  }
  before_trial_.clear();
}

}  // namespace railyard
