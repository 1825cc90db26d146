// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Describes one operation of all members of a tree of switches that reduce.
struct Aggregation {
  // A reduction adds up the operands of all members and gives all of them the sum. In a gather each
  // block comes from one member, and all members receive it. In a scatter all members contribute to
  // each block, and one member receives its sum. The other members' packets are empty, but they are
  // sent, since the switches wait for one packet from each branch.
  enum class Kind : uint8_t { kReduce, kGather, kScatter };

  Kind kind = Kind::kReduce;
  uint64_t bytes = 0;   // of all blocks
  uint32_t blocks = 1;  // of equal size
  uint32_t owner = 0;   // place in the tree of the first block's member; the next ones follow
};

}  // namespace railyard
