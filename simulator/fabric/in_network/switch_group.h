// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

// Counts the packets that a switch combines for a group of GPUs, or for the branches of a node of
// an aggregation tree. For each piece one packet per GPU or branch arrives, and one packet leaves.
// The object counts the arrivals of incomplete pieces, which are numbered modulo 2^32 without gaps.
class SwitchGroup {
 public:
  explicit SwitchGroup(uint16_t gpu_count) : gpu_count_(gpu_count) {}

  uint16_t gpu_count() const { return gpu_count_; }
  // Counts one more packet of the piece. Returns whether it was the last one.
  bool CountOperand(uint32_t piece);

 private:
  void Grow();

  uint16_t gpu_count_;
  uint32_t first_piece_ = 0;          // the oldest incomplete one
  std::vector<uint16_t> come_ = {0};  // by piece modulo its size, a power of two
};

}  // namespace railyard
