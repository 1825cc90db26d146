// SPDX-License-Identifier: GPL-2.0-only
// Determines the sizes of slots, chunks and slices of a collective (src/init.cc,
// src/include/collectives.h, calcCollChunking in src/enqueue.cc).
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/collectives/replayable.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

inline constexpr uint32_t kSlots = 8;  // of a connection (NCCL_STEPS)

// Describes a protocol's slots (DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE; for Simple,
// NCCL_BUFFSIZE): the payload of a slot, and the grain of which chunks are multiples
// (ncclProtoGrainSize).
struct SlotRule {
  uint64_t payload_bytes = 0;
  uint64_t grain_bytes = 0;
  uint32_t line_payload_bytes = 1;
  uint32_t line_wire_bytes = 1;
};
SlotRule SlotRuleOf(Protocol protocol, const NcclSettings& settings);

// Holds chunkSteps and sliceSteps: 4 and 2 for AllReduce, AllGather and ReduceScatter on rings with
// Simple, which makes two slices of two slots; else 1 and 1.
struct StepsRule {
  uint64_t slots_per_chunk = 1;
  uint64_t slots_per_slice = 1;
};
StepsRule StepsRuleOf(CollectiveKind kind, const ReplayChoice& choice);

MessageRule MessageRuleOf(const StepsRule& steps, const SlotRule& slot, uint32_t element_bytes);

// Describes the trees of a communicator, and the version of NCCL that uses them.
struct TreeRule {
  Protocol protocol = Protocol::kSimple;
  double ranks_per_node = 1;
  double nodes = 1;
  uint32_t version = 0;  // encoded as by ncclGetVersion
};
// Returns the chunk size of a tree. LL128, and Simple before NCCL 2.20, use smaller chunks while
// there are too few to fill the tree's levels.
uint64_t TreeChunkBytes(uint64_t share_bytes, uint64_t slot_bytes, const TreeRule& rule);

// Returns the chunk size of PAT, which is halved while a channel's data over all ranks has fewer
// than 32 chunks (16 for ReduceScatter).
uint64_t PatChunkBytes(uint64_t slot_bytes, uint64_t all_bytes, CollectiveKind kind);

// Returns the chunk size of CollNetDirect and CollNetChain, which is smaller while there are too
// few rounds for the depth of their path.
struct CollnetRounds {
  uint64_t bytes = 0;
  uint64_t chunks = 1;  // per round
  uint64_t depth = 1;
  uint64_t fewest = 1;  // while there are fewer rounds, chunks are halved down to 32 KiB
};
uint64_t CollnetChunkBytes(uint64_t chunk_bytes, const CollnetRounds& rounds);

// Returns the chunk size of NVLS and NVLSTree, which is smaller for smaller messages. `heads`
// slices are processed at a time, over all channels that share `bytes`.
uint64_t NvlsChunkBytes(uint64_t chunk_bytes, uint64_t bytes, uint64_t heads);
uint64_t NvlsTreeChunkBytes(uint64_t chunk_bytes, uint64_t bytes, uint64_t heads);

}  // namespace railyard
