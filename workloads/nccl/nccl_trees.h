// SPDX-License-Identifier: GPL-2.0-only
// Builds NCCL's trees: a chain through the GPUs of each server and, over the servers, one of two
// binary trees; each leaf of one is an inner node of the other (src/graph/trees.cc, connect.cc).
// The pattern is the one in which one GPU per server and channel has all of the channel's NIC
// traffic, as NCCL's search finds it on H100 servers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "traces/trace/logged_graph.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_channels.h"

namespace railyard {

inline constexpr uint32_t kTreeArity = kTreeChildrenMax;

// Holds the neighbours of a rank in a tree, as communicator ranks; kNoPeer stands for a missing
// one.
struct TreePlace {
  int32_t up = kNoPeer;
  std::array<int32_t, kTreeArity> down = {kNoPeer, kNoPeer, kNoPeer};
};

// Returns a node's place in the first or the second of the two trees over `node_count` nodes, by
// node numbers (ncclGetDtree). The first of `down` precedes the node in the tree's order, the
// second follows it; either may be missing.
TreePlace PlaceInDoubleTree(uint32_t node_count, uint32_t node, bool second);

// Returns trees[channel][rank]. `graph_channels` is the number of channels before duplication: the
// channels from there on have the same chains and the second tree. `mesh_rings` is as in
// CommunicatorChannels::mesh_rings; a chain is then a ring that is cut open. Precondition: the
// layout is as BuildChannels requires, with at least two ranks.
std::vector<std::vector<TreePlace>> BuildTrees(
    const CommunicatorLayout& layout, uint32_t graph_channels, uint32_t channel_count,
    const std::vector<std::vector<uint32_t>>& mesh_rings = {});

// Returns the trees that the layout states, repeated from the first if there are fewer than
// `channel_count`.
std::vector<std::vector<TreePlace>> StatedTrees(const CommunicatorLayout& layout,
                                                uint32_t channel_count);
// Returns only the chains of these trees: their heads have no parent.
std::vector<std::vector<TreePlace>> BuildChains(
    const CommunicatorLayout& layout, uint32_t graph_channels, uint32_t channel_count,
    const std::vector<std::vector<uint32_t>>& mesh_rings = {});

}  // namespace railyard
