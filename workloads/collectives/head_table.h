// SPDX-License-Identifier: GPL-2.0-only
// Lists the heads of algorithms in which every GPU of a server is the head of one slice of the
// data: NVLS, NVLSTree and CollNetDirect.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/collectives/schedule.h"

namespace railyard {

// Holds the GPUs of a communicator by server.
struct HeadTable {
  std::vector<std::vector<RankIndex>> servers;  // ranks by server, in the order of their GPUs
  std::vector<uint32_t> server_of;              // by rank
  std::vector<uint32_t> head_of;                // by rank: place in its server
  // Precondition: all servers have the same number of ranks.
  explicit HeadTable(std::vector<std::vector<RankIndex>> ranks_by_server);
  uint32_t heads() const { return static_cast<uint32_t>(servers.front().size()); }
  // Returns the heads of a rank's slice on all servers, itself included, with connections of `use`.
  std::vector<LanePeer> HeadsOfSlice(RankIndex rank, ConnectionUse use) const;
};

struct SliceChunk {
  uint64_t offset_bytes = 0;
  uint64_t bytes = 0;
};
// Divides data that is processed in loops of `parts` chunks. The last loop is divided evenly, in
// multiples of `grain_bytes`.
struct ChunkLoops {
  uint64_t total_bytes = 0;
  uint64_t chunk_bytes = 0;
  uint64_t parts = 1;
  uint64_t grain_bytes = 1;

  // Returns the part-th chunk of a loop.
  SliceChunk ChunkOf(uint64_t loop, uint64_t part) const;
};

}  // namespace railyard
