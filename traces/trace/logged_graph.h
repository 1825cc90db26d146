// SPDX-License-Identifier: GPL-2.0-only
// Holds the rings and trees of a communicator, as NCCL prints them when the communicator is made
// (src/graph/connect.cc, src/init.cc; NCCL_DEBUG_SUBSYS=INIT,GRAPH).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace railyard {

inline constexpr uint32_t kTreeChildrenMax = 3;  // NCCL_MAX_TREE_ARITY

// Holds the graph of one rank's log lines, by channel.
struct LoggedGraph {
  std::map<uint32_t, uint32_t> next;                // the next rank in the ring
  std::map<uint32_t, int32_t> parent;               // in the tree; -1 for none
  std::map<uint32_t, std::vector<uint32_t>> rings;  // only rank 0 prints whole rings
  uint32_t ring_count = 0;                          // as the lines of whole rings state
  bool has_rings() const { return !next.empty() || !rings.empty(); }
};

// Returns true if `ring` has each of `size` ranks once and begins with rank 0.
bool IsRing(const std::vector<uint32_t>& ring, size_t size);
// `parents` is by rank. Returns true if there is one root to which all others lead, and no rank has
// too many children.
bool IsTree(const std::vector<int32_t>& parents, size_t size);

// These return the rings and trees of all channels; empty unless the lines give those of all
// channels completely and agree. `by_rank` has nullptr for a rank without lines.
std::vector<std::vector<uint32_t>> RingsOf(std::span<const LoggedGraph* const> by_rank);
std::vector<std::vector<int32_t>> TreeParentsOf(std::span<const LoggedGraph* const> by_rank);

}  // namespace railyard
