// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/programs/checkpoints.h"

#include <map>
#include <utility>

namespace railyard {
namespace {

// The stream that a rank saves on.
constexpr uint32_t kSaveStream = 0;

class CheckpointWriter {
 public:
  CheckpointWriter(int64_t save_ps, std::vector<JobOperation>& program)
      : save_ps_(save_ps), program_(program), number_(program.size()) {}

  // Returns the operations that follow upon the checkpoints before operations `before`.
  std::vector<uint32_t> Write(const std::vector<uint32_t>& before) {
    std::vector<uint32_t> places;
    for (uint32_t i = 0; i < program_.size(); ++i) {
      if (places.size() < before.size() && before[places.size()] == i) {
        places.push_back(AddCheckpoint());
      }
      Copy(i);
    }
    program_ = std::move(written_);
    return places;
  }
  uint32_t NumberOf(uint32_t before) const { return number_[before]; }

 private:
  uint32_t Append(const JobOperation& operation) {
    written_.push_back(operation);
    return static_cast<uint32_t>(written_.size()) - 1;
  }

  uint32_t AddCheckpoint() {
    for (const auto& [stream, last] : last_of_stream_) {
      if (stream != kSaveStream) Compute(0, last);
    }
    save_ = Compute(save_ps_, JobOperation::kNone);
    last_of_stream_.clear();
    return save_ + 1;
  }

  uint32_t Compute(int64_t ps, uint32_t after) {
    return Append({.stream = kSaveStream, .after = after, .compute_before_ps = ps});
  }

  void Copy(uint32_t index) {
    JobOperation operation = program_[index];
    if (operation.after != JobOperation::kNone) operation.after = number_[operation.after];
    const bool is_first = !last_of_stream_.contains(operation.stream);
    if (is_first && operation.stream != kSaveStream && operation.after == JobOperation::kNone) {
      operation.after = save_;
    }
    number_[index] = Append(operation);
    last_of_stream_[operation.stream] = number_[index];
  }

  int64_t save_ps_;
  std::vector<JobOperation>& program_;
  std::vector<uint32_t> number_;  // by operation: the one that was written of it
  std::vector<JobOperation> written_;
  uint32_t save_ = JobOperation::kNone;          // the last
  std::map<uint32_t, uint32_t> last_of_stream_;  // since then
};

}  // namespace

CheckpointPlaces AddCheckpoints(const IterationBegins& iterations, uint64_t every, int64_t save_ps,
                                Job& job) {
  CheckpointPlaces places(job.operations.program_count());
  for (uint32_t program = 0; program < places.size(); ++program) {
    const std::vector<uint32_t>& begins = iterations.of_program[program];
    if (begins.empty()) continue;  // another part's
    std::vector<JobOperation>& operations = job.operations.program(program);
    std::vector<uint32_t> before;
    for (uint64_t i = every; i < iterations.count && !operations.empty(); i += every) {
      before.push_back(begins[i]);
    }
    CheckpointWriter writer(save_ps, operations);
    places[program] = writer.Write(before);
    for (uint32_t& begin : job.iteration_begins[program]) begin = writer.NumberOf(begin);
  }
  return places;
}

std::optional<uint32_t> CollectiveAcross(const CheckpointPlaces& places, const Job& job) {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> checkpoints_before(job.collectives.size(), kNone);
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    const std::vector<JobOperation>& operations = job.operations[rank];
    const std::vector<uint32_t>& of_rank = places[job.operations.program_of_rank(rank)];
    size_t passed = 0;
    for (uint32_t i = 0; i < operations.size(); ++i) {
      while (passed < of_rank.size() && of_rank[passed] <= i) ++passed;
      if (operations[i].is_compute()) continue;
      const CollectiveIndex collective = job.CollectiveOf(rank, operations[i]);
      size_t& before = checkpoints_before[collective];
      if (before != kNone && before != passed) return collective;
      before = passed;
    }
  }
  return std::nullopt;
}

}  // namespace railyard
