// SPDX-License-Identifier: GPL-2.0-only
// Writes one rank's operations. Computation is accumulated until a collective follows or an
// operation must wait for it.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

// Names the streams of a rank.
enum class PlanStream : uint8_t {
  kCompute,  // and the collectives for which computation waits: tensor and context parallel
  kData,     // gradients and parameters
  kReceiveActivation,
  kSendActivation,
  kReceiveGradient,
  kSendGradient,
  kExpertData,  // gradients and parameters of experts
  kEmbedding,   // rows of embedding tables and their gradients
  kArrivals,    // computation that ends when requests arrive
  kCache,       // keys and values from prefill to decoding
};

class ProgramWriter {
 public:
  // Begins an iteration with the next operation.
  void BeginIteration();
  // Adds computation on the compute stream.
  void Compute(int64_t ps) { pending_ps_ += ps; }
  // Makes the next operation on the compute stream wait for `operation`, too.
  void WaitFor(uint32_t operation);
  // Adds a collective on the compute stream, after the computation so far.
  void Collective(TraceOperation operation);
  // Adds sends and receives that begin together, after the computation so far.
  void Group(const std::vector<TraceOperation>& calls);
  // Adds an operation on another stream, after operation `after` of any stream (kNone: only after
  // the earlier operations of its stream). Returns its number.
  uint32_t Add(PlanStream stream, TraceOperation operation, uint32_t after);
  // Adds sends and receives on another stream that begin together. Returns the number of one of
  // them, or `after` if `calls` is empty.
  uint32_t AddGroup(PlanStream stream, const std::vector<TraceOperation>& calls, uint32_t after);
  // Returns the number of the operation with which the computation so far ends.
  uint32_t Mark();

  const std::vector<TraceOperation>& operations() const { return operations_; }
  std::vector<TraceOperation> Take() { return std::move(operations_); }

  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  uint32_t Append(const TraceOperation& operation);

  std::vector<TraceOperation> operations_;
  int64_t pending_ps_ = 0;
  uint32_t wait_for_ = kNone;
  uint32_t last_on_compute_ = kNone;
  bool begins_iteration_ = false;
};

}  // namespace railyard
