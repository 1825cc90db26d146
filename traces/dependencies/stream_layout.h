// SPDX-License-Identifier: GPL-2.0-only
// Assigns operations of a rank that depend on any number of others to streams: an operation of a
// trace waits for the previous operation on its stream and for one other.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/dependencies/precedence.h"
#include "traces/trace/trace.h"

namespace railyard {

class StreamLayout {
 public:
  // Appends `operation` to the program, preceded by computation of length 0 if it depends on more
  // operations than an operation can name. `waits_for` are results of earlier calls. Returns the
  // operation's number for later calls.
  uint32_t Add(TraceOperation operation, std::vector<uint32_t> waits_for);

  // Appends an operation on which no other depends, on a separate stream of `lane`.
  void AddBeside(uint32_t lane, TraceOperation operation, std::vector<uint32_t> waits_for);

  const std::vector<TraceOperation>& operations() const { return operations_; }
  std::vector<TraceOperation> Take() && { return std::move(operations_); }
  // Returns the number of operations that follow, on a stream, an operation on which they do not
  // depend, because kStreamsMax streams are in use: on the one that has moved the fewest bytes.
  uint64_t serialized() const { return serialized_; }

  // The largest number of streams, and so of operations of a rank that can run at once. It bounds
  // the time that the layout of a hostile graph takes.
  static constexpr uint32_t kStreamsMax = 4096;

 private:
  uint32_t NewStream();
  uint32_t Append(TraceOperation operation, std::vector<uint32_t> after);

  std::vector<TraceOperation> operations_;
  Precedence precedence_;  // lanes are streams; its numbers are those of the operations
  std::map<uint32_t, uint32_t> stream_of_lane_;
  std::vector<uint64_t> bytes_on_stream_;
  uint64_t serialized_ = 0;
};

}  // namespace railyard
