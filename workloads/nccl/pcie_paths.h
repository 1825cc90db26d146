// SPDX-License-Identifier: GPL-2.0-only
// GPUs of a server that meet over PCIe, as NCCL sees them: how far apart they are, by which of its
// transports they talk (src/graph/paths.cc, src/transport/{p2p,shm}.cc), and how fast a ring of
// them is (src/graph/search.cc).
#pragma once

#include <cstdint>
#include <span>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Over PCIe alone. Precondition: both have a PCIe place, on one server.
PathType PciePathType(const PciePlace& a, const PciePlace& b);

// The farthest that GPUs access each other's memory: what P2P_LEVEL says, else PXB, with AMD's CPUs
// SYS (ncclTopoCheckP2p).
PathType P2pLevelOf(const CommunicatorLayout& layout, const NcclSettings& settings);

// How two ranks of a server talk.
enum class LocalTransport : uint8_t {
  kNvlink,
  kPeerToPeer,    // P2P over PCIe: the sender stores into the receiver's memory
  kSharedMemory,  // SHM: it stores into the memory of the receiver's socket, the receiver loads
  kNone,
};
LocalTransport LocalTransportOf(const CommunicatorLayout& layout, const NcclSettings& settings,
                                uint32_t from, uint32_t to);

// What NCCL's search settles on for the ring over a server's ranks in their order, in GB/s: the
// highest of its speeds that every PCIe link and the links between sockets carry. Precondition: at
// least two ranks, with PCIe places.
double PcieRingGbPerS(const CommunicatorLayout& layout, const NcclSettings& settings,
                      std::span<const uint32_t> ranks);

}  // namespace railyard
