// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/program_writer.h"

#include <utility>

namespace railyard {

void ProgramWriter::BeginIteration() {
  if (pending_ps_ > 0 || wait_for_ != kNone) Mark();
  begins_iteration_ = true;
}

void ProgramWriter::WaitFor(uint32_t operation) {
  // Computation gathered so far does not wait, and an operation waits for only one other.
  if (pending_ps_ > 0 || wait_for_ != kNone) Mark();
  wait_for_ = operation;
}

void ProgramWriter::Collective(TraceOperation operation) {
  operation.stream = static_cast<uint32_t>(PlanStream::kCompute);
  operation.compute_before_ps = std::exchange(pending_ps_, 0);
  operation.after = wait_for_ == kNone ? 0 : std::exchange(wait_for_, kNone) + 1;
  last_on_compute_ = Append(operation);
}

void ProgramWriter::Group(const std::vector<TraceOperation>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i == 0) {
      Collective(calls[i]);
    } else {
      last_on_compute_ = Add(PlanStream::kCompute, calls[i], kNone);
    }
  }
}

uint32_t ProgramWriter::Add(PlanStream stream, TraceOperation operation, uint32_t after) {
  operation.stream = static_cast<uint32_t>(stream);
  operation.after = after == kNone ? 0 : after + 1;
  return Append(operation);
}

uint32_t ProgramWriter::AddGroup(PlanStream stream, const std::vector<TraceOperation>& calls,
                                 uint32_t after) {
  uint32_t added = after;
  for (size_t i = 0; i < calls.size(); ++i) added = Add(stream, calls[i], i == 0 ? after : kNone);
  return added;
}

uint32_t ProgramWriter::Mark() {
  if (pending_ps_ > 0 || wait_for_ != kNone || last_on_compute_ == kNone) {
    Collective({.kind = CollectiveKind::kCompute});
  }
  return last_on_compute_;
}

uint32_t ProgramWriter::Append(const TraceOperation& operation) {
  operations_.push_back(operation);
  operations_.back().begins_iteration = std::exchange(begins_iteration_, false);
  return static_cast<uint32_t>(operations_.size()) - 1;
}

}  // namespace railyard
