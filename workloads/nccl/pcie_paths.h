// SPDX-License-Identifier: GPL-2.0-only
// Describes the communication of a server's GPUs over PCIe in NCCL's terms: the distance between
// GPUs, their transport (src/graph/paths.cc, src/transport/{p2p,shm}.cc), and the speed of a ring
// of them (src/graph/search.cc).
#pragma once

#include <cstdint>
#include <span>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Returns the path type over PCIe alone. Precondition: both have a PCIe place, on one server.
PathType PciePathType(const PciePlace& a, const PciePlace& b);

// Returns the greatest distance at which GPUs access each other's memory: that of P2P_LEVEL if set,
// else PXB, or SYS with AMD's CPUs (ncclTopoCheckP2p).
PathType P2pLevelOf(const CommunicatorLayout& layout, const NcclSettings& settings);

// Names the transport between two ranks of a server.
enum class LocalTransport : uint8_t {
  kNvlink,
  kPeerToPeer,    // P2P over PCIe: the sender stores into the receiver's memory
  kSharedMemory,  // SHM: the sender stores into the receiver's socket's memory, the receiver loads
  kNone,
};
LocalTransport LocalTransportOf(const CommunicatorLayout& layout, const NcclSettings& settings,
                                RankIndex from, RankIndex to);

// Returns the speed in GB/s that NCCL's search finds for the ring over a server's ranks in their
// order: the highest of its speeds that every PCIe link and the links between sockets can carry.
// Precondition: at least two ranks, all with PCIe places.
double PcieRingGbPerS(const CommunicatorLayout& layout, const NcclSettings& settings,
                      std::span<const RankIndex> ranks);

}  // namespace railyard
