// SPDX-License-Identifier: GPL-2.0-only
// Parts of the network in which some collectives have nothing to do with what goes on elsewhere,
// and the episodes that the replay engine has there. Plain state.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "simulator/execution/connections/nic_group.h"
#include "simulator/replay/episodes/episode_cache.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A collective of all GPUs of a partition, the only one in it, from the first call's begin to the
// last one's end.
struct PartitionEpisode {
  uint32_t collective = 0;
  int64_t begin_ps = 0;
  uint32_t known = UINT32_MAX;  // of partition_cache_
  bool is_new = false;          // it was simulated for this one
  bool is_replayed = false;     // else it is simulated, and compared
  uint32_t calls_ended = 0;
  RestCounts begin_counts{};       // where it is simulated
  std::vector<int64_t> ends_ps{};  // the same; by place, since the begin
};

// GPUs whose calls, of some communicators, have nothing to do with what goes on elsewhere, and
// what goes on there: of a server, with their NVLinks; or each of a server of its own, with their
// NICs, at one switch.
struct Partition {
  std::vector<uint32_t> gpus;     // by place
  std::vector<LinkId> links{};    // NVLinks
  uint32_t shape = 0;             // NvlinkPartition's
  bool of_nics = false;           // else of NVLinks
  NicGroup nics{};                // as of when it was last looked at
  std::vector<bool> may_touch{};  // by communicator: some of its calls may use the NICs
  std::vector<bool> is_near{};    // by GPU: some such communicator has it
  bool is_in_turn = true;         // each rank uses its NVLinks in one operation after the other
  bool is_faulty = false;         // some fault may do something to it
  bool is_on_detour = false;      // connections that were moved to other NICs cross it
  std::vector<uint32_t> calls{};  // running, that use it
  uint32_t launched = 0;          // of those, what is simulated
  std::unordered_set<uint64_t> made{};  // calls simulated so far: MadeKey()
  uint32_t misses = 0;                  // in a row
  uint32_t unused = 0;                  // simulated ahead in vain, in a row
  DeviceId apart_at = 0;                // while it is replayed
  std::optional<PartitionEpisode> episode{};
};

// One that has begun, or will at a time that is known.
struct PartitionCall {
  int64_t begin_ps = 0;
  uint32_t number = 0;
  uint32_t rank = 0;
  uint32_t running = UINT32_MAX;
};

// A call of a rank that may have to do with a partition; it runs, or it is known when it will
// begin.
struct NearCall {
  uint32_t rank = 0;
  uint32_t index = 0;
  int64_t begin_ps = 0;
  int64_t end_ps = 0;    // at the earliest
  bool is_own = false;   // it is of the episode
  bool is_told = false;  // it is replayed, in another partition
};

// At an instant of rest.
struct PartitionRest {
  bool is_at_rest = false;
  RestState state{};
  uint32_t number = EpisodeCache::kStateUnknown;  // of the state, where it was asked for
  RestCounts counts{};  // the first section; then of the network as a whole
  uint64_t unrepeatable = 0;
};

// What is simulated ahead.
struct SpeculativeEpisode {
  const Partition* partition = nullptr;
  int64_t begin_ps = 0;
  size_t calls_left = 0;
  Episode episode{};
  PartitionRest end{};
};

}  // namespace railyard
