// SPDX-License-Identifier: GPL-2.0-only
// Operations of a rank that wait for any number of others, laid out on streams: an operation of a
// trace waits for the one before it on its stream and for one other.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

class StreamLayout {
 public:
  // Appends `operation` to the program, behind computation of no length where it waits for more
  // operations than one can name. `waits_for`: what earlier calls returned. Returns the operation's
  // number, for later calls.
  uint32_t Add(TraceOperation operation, std::vector<uint32_t> waits_for);

  // The same for an operation that no other waits for, on a stream that `lane` has to itself.
  void AddBeside(uint32_t lane, TraceOperation operation, std::vector<uint32_t> waits_for);

  const std::vector<TraceOperation>& operations() const { return operations_; }
  std::vector<TraceOperation> Take() && { return std::move(operations_); }
  // Operations that stand behind one that they do not wait for, because kStreamsMax are in use.
  uint64_t serialized() const { return serialized_; }

  // As many operations of a rank can be under way at once. GPUs run 128 kernels side by side
  // (CUDA C++ Programming Guide, "Maximum number of resident grids per device").
  static constexpr uint32_t kStreamsMax = 128;

 private:
  // Of each stream the latest that `waits_for` names, the latest first.
  std::vector<uint32_t> LatestOfStreams(std::vector<uint32_t> waits_for) const;
  uint32_t NewStream();
  uint32_t Append(TraceOperation operation, const std::vector<uint32_t>& after);

  std::vector<TraceOperation> operations_;
  std::vector<uint32_t> last_on_stream_;  // the number of its last operation
  std::map<uint32_t, uint32_t> stream_of_lane_;
  uint32_t next_shared_ = 0;
  uint64_t serialized_ = 0;
};

}  // namespace railyard
