// SPDX-License-Identifier: GPL-2.0-only
// The channels NCCL builds for a communicator: a ring per channel, and the channels of Send/Recv.
// Modelled: what NCCL's graph search (src/graph/search.cc, connect.cc, paths.cc) decides for H100
// servers with one 400 or 200 Gb/s NIC per GPU behind a common PCIe switch. Left out: the search
// itself; layouts it was not run for get a rule in the same spirit and a sentence in `assumptions`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace railyard {

struct ExplicitAlgorithm;

enum class GpuGeneration : uint8_t { kVolta, kAmpere, kHopper, kBlackwell };
inline constexpr int kGpuGenerationCount = 4;

// Who made the CPUs of a communicator's servers (cpuArch and cpuVendor, src/init.cc). One that is
// not known counts as Intel's, up to Ice Lake.
enum class CommunicatorCpu : uint8_t { kIntel, kAmd, kArm, kMixed };

// How far two GPUs of a server are apart, by NCCL's names and in its order (src/graph/topo.h; those
// between GPUs that are modelled).
enum class PathType : uint8_t {
  kLoc,  // the GPU itself
  kNvl,  // NVLink
  kPix,  // one PCIe switch
  kPxb,  // several
  kPhb,  // a host bridge
  kSys,  // two of them
};

// A GPU's place among the PCIe switches and host bridges of its server, by their local indices; -1:
// there is none.
struct PciePlace {
  int32_t host_bridge = -1;
  int32_t first_switch = -1;  // that the GPU hangs on
  int32_t last_switch = -1;   // that hangs on the host bridge
  uint64_t link_bps = 0;      // of the GPU, payload
  uint64_t uplink_bps = 0;    // of the last switch
};

// Where a communicator's ranks are: what NCCL's topology detection would find.
struct RankPlace {
  uint32_t node = 0;         // nodes numbered in order of first appearance in rank order
  uint32_t local_index = 0;  // the GPU's index in its server, < gpus_per_server
  int32_t server = -1;       // of the fabric; -1: unknown
  PciePlace pcie{};
};
// The NIC of a server's GPU.
struct NicPlace {
  int32_t server = 0;
  uint32_t local_index = 0;
  bool operator==(const NicPlace&) const = default;
};
// What becomes of the data of NICs that cannot be used. NCCL does neither: both are policies of
// research, to be compared.
enum class NicPolicy : uint8_t {
  kPxn,     // it takes the server's next usable NIC, by PXN
  kReplan,  // it is spread over all others, as R2CCL's (arXiv 2512.25059) over what is left: of
            // NICs known beforehand no ring for their rails
};
struct CommunicatorLayout {
  std::vector<RankPlace> ranks;
  uint32_t gpus_per_server = 8;           // of the platform, not of the communicator
  uint64_t nic_bps = 400'000'000'000ULL;  // of each GPU's NIC
  GpuGeneration generation = GpuGeneration::kHopper;
  bool nvlink = true;         // joins the GPUs of a server; else PCIe
  bool peer_access = true;    // over PCIe
  uint32_t gpus_per_nic = 1;  // the most of its own that share a NIC
  CommunicatorCpu cpu = CommunicatorCpu::kIntel;
  bool nvswitch = true;  // by switches that can add up and copy (NVLink SHARP), from Hopper on
  // Where NVLinks lead from GPU to GPU: how many from the a-th of the first node's GPUs that take
  // part, by local index, to the b-th. Empty: NVSwitches join them all, or nothing does.
  std::vector<std::vector<uint32_t>> mesh_lanes{};
  // As a log states them, by channel; empty: by NCCL's rules. As TraceCommunicator has them.
  std::vector<std::vector<uint32_t>> rings{};
  std::vector<std::vector<int32_t>> tree_parents{};
  uint32_t node_count() const;
};

// Ranks of each node in the order of their GPUs.
std::vector<std::vector<uint32_t>> RanksByNode(const CommunicatorLayout& layout);

// By which NCCL reaches other servers (NCCL_NET).
enum class NetPlugin : uint8_t { kIb, kSocket, kAwsLibfabric };

// NCCL's variables, by its own names (without NCCL_), with the defaults of the stated version.
struct NcclSettings {
  uint32_t version = 22705;  // as ncclGetVersion: 2.27.5
  uint64_t buffsize_bytes = 4u << 20;
  uint32_t cross_nic = 2;
  uint32_t min_nchannels = 0;  // 0: not set
  uint32_t max_nchannels = 0;
  bool pxn_disable = false;
  NetPlugin net = NetPlugin::kIb;
  // OFI_NCCL_NET_LATENCY; not set: the plug-in's own (AwsLibfabricNetLatencyUs).
  std::optional<double> ofi_net_latency_us;
  uint64_t p2p_net_chunksize_bytes = 128u << 10;
  uint64_t p2p_nvl_chunksize_bytes = 512u << 10;
  uint64_t p2p_pci_chunksize_bytes = 128u << 10;
  uint64_t p2p_ll_threshold_bytes = 16u << 10;  // of a message's bytes on a channel
  // The farthest that GPUs access each other's memory; not set: by the CPU (P2pLevelOf).
  // P2P_DISABLE: kLoc.
  std::optional<PathType> p2p_level;
  bool shm_disable = false;
  bool nvls_enable = true;
  uint64_t nvls_chunksize_bytes = 128u << 10;
  // Not set: 64 KiB from four nodes on, else NVLS_CHUNKSIZE.
  std::optional<uint64_t> nvlstree_max_chunksize_bytes;
  uint32_t pat_enable = 2;      // 0: never; 1: wherever it can be; 2: where every node has one rank
  bool collnet_enable = false;  // the network's switches add up (SHARP)
  uint32_t nchannels_per_net_peer = 0;  // 0: not set
  // ALGO and PROTO: bit n is enumerator n of Algorithm and Protocol, allowed to be chosen.
  uint32_t algorithms = UINT32_MAX;
  uint32_t protocols = UINT32_MAX;
  // Rings then enter and leave on one rail.
  std::vector<NicPlace> unusable_nics;
  std::optional<NicPolicy> nic_policy;  // also of NICs that fail during the run
  // What collectives of its kind, number of ranks and root run by, whatever NCCL would; or nullptr.
  std::shared_ptr<const ExplicitAlgorithm> algorithm;

  // NICs reach GPU memory, which they do not over TCP sockets.
  bool gpu_direct() const { return net != NetPlugin::kSocket; }
  // A GPU's data may leave by the NIC of another (ncclTopoComputePaths, src/graph/paths.cc).
  bool UsesPxn() const { return gpu_direct() && !pxn_disable; }
  // Between servers LL128 wants a NIC behind the GPU's own PCIe switches, and without GPU Direct
  // the path leads through the CPU, unless PROTO names it (ncclTopoTuneModel, src/graph/tuning.cc).
  bool AllowsLl128BetweenServers() const { return gpu_direct() || protocols != UINT32_MAX; }
};
// As NCCL encodes versions since 2.9: "2.27.5" → 22705; "2.7.8" → 2708 before. A build suffix
// ("2.27.5-1", "2.27.5+cuda12.9") is passed over. nullopt if the text is not a version of NCCL 2.
std::optional<uint32_t> ParseNcclVersion(const std::string& text);

// The channels of one communicator: each is a ring over its ranks.
struct CommunicatorChannels {
  // rings[channel][position] → communicator rank; position 0 is rank 0, as NCCL prints rings.
  std::vector<std::vector<uint32_t>> rings;
  // sending_nic[channel][rank]: local index of the GPU of the rank's server whose NIC the channel
  // leaves the server by. Meaningful where the ring's next rank is on another node; other than the
  // rank's own local index where the data is relayed (PXN).
  std::vector<std::vector<uint32_t>> sending_nic;
  // Of a mesh (CommunicatorLayout::mesh_lanes): the order of a node's GPUs on each ring that was
  // found, before duplication.
  std::vector<std::vector<uint32_t>> mesh_rings;
  uint32_t graph_channel_count = 0;  // rings the search found, before it duplicates them
  uint32_t p2p_channel_count = 0;    // a power of two; may exceed the number of rings
  uint32_t p2p_channels_per_peer = 0;
  std::vector<std::string> assumptions;  // where the rules do not cover this layout
};

// Precondition: the layout's nodes are numbered as RankPlace says, with distinct local indices. A
// communicator of one rank has no channels.
CommunicatorChannels BuildChannels(const CommunicatorLayout& layout, const NcclSettings& settings);

}  // namespace railyard
