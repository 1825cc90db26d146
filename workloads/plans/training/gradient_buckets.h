// SPDX-License-Identifier: GPL-2.0-only
// Writes the data-parallel part of a training step on one rank: the collectives that reduce
// gradients and gather parameters, and when they run. docs/workloads.md lists the collectives of
// each ZeRO stage.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/units/divide_up.h"
#include "workloads/plans/plan/plan.h"
#include "workloads/plans/program_writer.h"

namespace railyard {

class GradientBuckets {
 public:
  // All must outlive this. `communicator` is that of the data group, which has `group_size` ranks;
  // `stream` is the stream of its calls.
  GradientBuckets(const Training& training, Precision parameter_precision, PlanStream stream,
                  uint32_t communicator, uint32_t group_size, ProgramWriter& writer);

  // Adds the start of DistributedDataParallel (_sync_module_states): rank 0 sends the weights,
  // given by their elements, in buckets that are closed when one fills them to 250 MiB. Computation
  // waits.
  void Broadcast(const std::vector<uint64_t>& weights);
  // Broadcasts other tensors, in one call.
  void BroadcastBuffers(uint64_t elements, Datatype datatype);
  // Must be called before a part of that micro-batch's backward pass. Returns true if it ends in
  // reductions.
  bool BeginBackward(uint32_t micro_batch);
  // States that `elements` of gradients are available once the operations written so far are done.
  // A bucket that becomes full is reduced.
  void Ready(uint64_t elements);
  // Reduces the last gradients of a bucket that may not be full.
  void CloseBucket();
  // Ends a part of the backward pass or, with `is_last`, all of it, and reduces the buckets that
  // were held back.
  void EndBackward(bool is_last);
  // For ZeRO 1 and 2, after the optimizer's step: gathers all parameters on every rank.
  void GatherParameters();
  // For ZeRO 3: gathers the parameters of the next part while the previous part computes.
  // Computation waits for them.
  void GatherUnit(uint64_t elements);
  // Returns the last operation of the stream, or kNone.
  uint32_t last() const { return last_; }

 private:
  void Reduce(uint64_t elements, uint32_t after);
  uint64_t ShareOf(uint64_t elements) const { return DivideUp(elements, group_size_); }

  const Training& training_;
  const Datatype parameter_;
  const Datatype gradient_;
  const PlanStream stream_;
  const uint32_t communicator_;
  const uint32_t group_size_;
  ProgramWriter& writer_;
  uint64_t open_elements_ = 0;
  std::vector<uint64_t> held_back_;  // elements of full buckets
  std::vector<uint64_t> reduced_;    // of the last micro-batch: each bucket once
  bool is_last_micro_batch_ = false;
  uint32_t last_ = ProgramWriter::kNone;
  uint32_t unit_began_ = ProgramWriter::kNone;  // the operation after which the previous unit began
};

}  // namespace railyard
