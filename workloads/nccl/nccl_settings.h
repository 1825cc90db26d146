// SPDX-License-Identifier: GPL-2.0-only
// Holds NCCL's variables, as a run or a log sets them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/units/server_index.h"
#include "workloads/nccl/allowed_values.h"

namespace railyard {

struct ExplicitAlgorithm;

// Names the distance of two GPUs of a server, with NCCL's names and in its order (src/graph/topo.h;
// only the types that are modelled).
enum class PathType : uint8_t {
  kLoc,  // the GPU itself
  kNvl,  // NVLink
  kPix,  // one PCIe switch
  kPxb,  // several PCIe switches
  kPhb,  // a host bridge
  kSys,  // two host bridges
};

// Identifies the NIC of a server's GPU.
struct NicPlace {
  ServerIndex server{};
  uint32_t local_index = 0;
  bool operator==(const NicPlace&) const = default;
};
// Names the policy for data of NICs that cannot be used. NCCL has neither; both are policies from
// research, to be compared.
enum class NicPolicy : uint8_t {
  kPxn,     // data takes the server's next usable NIC, by PXN
  kReplan,  // data is spread over all other NICs, as in R2CCL (arXiv 2512.25059); there is no
            // ring on the rails of NICs that are known beforehand
};
// Names the plug-in by which NCCL reaches other servers (NCCL_NET).
enum class NetPlugin : uint8_t { kIb, kSocket, kAwsLibfabric };

inline constexpr uint64_t kDefaultNvlsChunkBytes = 128u << 10;

// Holds NCCL's variables under NCCL's names (without NCCL_), with the defaults of the stated
// version.
struct NcclSettings {
  uint32_t version = 22705;  // as ncclGetVersion: 2.27.5
  uint64_t buffsize_bytes = 4u << 20;
  uint32_t cross_nic = 2;
  uint32_t min_nchannels = 0;  // 0: not set
  uint32_t max_nchannels = 0;
  bool pxn_disable = false;
  NetPlugin net = NetPlugin::kIb;
  // OFI_NCCL_NET_LATENCY; if not set, AwsLibfabricNetLatencyUs().
  std::optional<double> ofi_net_latency_us;
  uint64_t p2p_net_chunksize_bytes = 128u << 10;
  uint64_t p2p_nvl_chunksize_bytes = 512u << 10;
  uint64_t p2p_pci_chunksize_bytes = 128u << 10;
  uint64_t p2p_ll_threshold_bytes = 16u << 10;  // for the bytes of a message on one channel
  // The greatest distance at which GPUs access each other's memory; if not set, it depends on the
  // CPU (P2pLevelOf). P2P_DISABLE sets kLoc.
  std::optional<PathType> p2p_level;
  bool shm_disable = false;
  bool nvls_enable = true;
  uint64_t nvls_chunksize_bytes = kDefaultNvlsChunkBytes;
  // If not set, it is 64 KiB from four nodes on, else NVLS_CHUNKSIZE.
  std::optional<uint64_t> nvlstree_max_chunksize_bytes;
  uint32_t pat_enable = 2;      // 0: never; 1: wherever possible; 2: if every node has one rank
  bool collnet_enable = false;  // the network's switches may reduce (SHARP)
  uint32_t nchannels_per_net_peer = 0;  // 0: not set
  AllowedValues<Algorithm> algorithms;  // ALGO
  AllowedValues<Protocol> protocols;    // PROTO
  // If there are any, rings enter and leave a server on one rail.
  std::vector<NicPlace> unusable_nics;
  std::optional<NicPolicy> nic_policy;  // also for NICs that fail during the run
  // Each of these algorithms replaces NCCL's choice for all collectives of its kind, number of
  // ranks and root.
  std::vector<std::shared_ptr<const ExplicitAlgorithm>> own_algorithms;

  // Returns true if NICs access GPU memory; with TCP sockets they do not.
  bool gpu_direct() const { return net != NetPlugin::kSocket; }
  // Returns true if a GPU's data may leave by the NIC of another GPU (ncclTopoComputePaths,
  // src/graph/paths.cc).
  bool UsesPxn() const { return gpu_direct() && !pxn_disable; }
  // Returns true if LL128 may be used between servers for a kind of collective. NCCL requires a NIC
  // behind the GPU's own PCIe switches, which excludes paths without GPU Direct, as they lead
  // through the CPU; but PROTO can force LL128 (ncclTopoTuneModel, src/graph/tuning.cc).
  bool AllowsLl128BetweenServers(CollectiveKind kind) const {
    return gpu_direct() || protocols.IsStatedFor(kind);
  }
};

}  // namespace railyard
