// SPDX-License-Identifier: GPL-2.0-only
// Identifies the subject of an event of kOperation: an operation that may begin, by its number, or
// a running operation, by its index. An event's target is a plain number of 32 bits; only this
// class knows how the two kinds share it.
#pragma once

#include <cstdint>

#include "simulator/units/job_ids.h"

namespace railyard {

class OperationEvent {
 public:
  // All numbers and indices must be smaller.
  static constexpr uint32_t kNumberEnd = 1u << 31;

  static constexpr OperationEvent Begins(CallNumber call) {
    return OperationEvent(kBeginBit | call);
  }
  static constexpr OperationEvent Runs(RunningIndex operation) { return OperationEvent(operation); }
  // Returns the event that has this target().
  static constexpr OperationEvent Of(uint32_t target) { return OperationEvent(target); }

  constexpr uint32_t target() const { return target_; }
  constexpr bool is_begin() const { return (target_ & kBeginBit) != 0; }
  // Returns the number of the operation that may begin. Precondition: is_begin().
  constexpr CallNumber call() const { return CallNumber{target_ & ~kBeginBit}; }
  // Returns the index of the running operation. Precondition: !is_begin().
  constexpr RunningIndex operation() const { return RunningIndex{target_}; }

 private:
  static constexpr uint32_t kBeginBit = kNumberEnd;

  explicit constexpr OperationEvent(uint32_t target) : target_(target) {}

  uint32_t target_;
};

}  // namespace railyard
