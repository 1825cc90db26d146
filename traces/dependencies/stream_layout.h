// SPDX-License-Identifier: GPL-2.0-only
// Assigns operations of a rank that depend on any number of others to streams: an operation of a
// trace waits for the previous operation on its stream and for one other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

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

  // The largest number of streams, and so of operations of a rank that can run at once. GPUs run
  // 128 kernels concurrently (CUDA C++ Programming Guide, "Maximum number of resident grids per
  // device").
  static constexpr uint32_t kStreamsMax = 128;

 private:
  // By stream: one more than the latest operation of it that an operation follows; 0 for none.
  using Followed = std::vector<uint32_t>;

  // Returns the latest operation of each stream in `waits_for`, the latest first, without those
  // that another one of them follows.
  std::vector<uint32_t> LatestOfStreams(std::vector<uint32_t> waits_for) const;
  bool Follows(uint32_t operation, uint32_t earlier) const;
  // Returns a stream whose last operation one of `after` follows; nullopt if there is none.
  std::optional<uint32_t> StreamBehind(const std::vector<uint32_t>& after) const;
  uint32_t NewStream();
  uint32_t Append(TraceOperation operation, std::vector<uint32_t> after);
  // Returns what an operation follows on other streams, behind the last one on its stream, if there
  // is one, and behind `after`.
  std::shared_ptr<const Followed> FollowedBehind(std::optional<uint32_t> last,
                                                 const std::vector<uint32_t>& after) const;

  std::vector<TraceOperation> operations_;
  // By operation; operations that follow the same share it. nullptr: nothing.
  std::vector<std::shared_ptr<const Followed>> followed_;
  std::vector<std::optional<uint32_t>> last_on_stream_;  // the number of its last operation
  std::map<uint32_t, uint32_t> stream_of_lane_;
  std::vector<uint64_t> bytes_on_stream_;
  uint64_t serialized_ = 0;
};

}  // namespace railyard
