// SPDX-License-Identifier: GPL-2.0-only
// Rail-optimized fabric of servers with one NVLink island each: NIC r of every server hangs on leaf
// r of its group, so that GPUs of equal local index are one switch apart and others meet at a
// spine.
//
//   gpu0..gpuG-1 ──NVLINK── nvswitch0..3      inside a server
//   gpu<r> ──HOST── nic<r> ──NIC_LEAF── leaf<r> (one group) or group<g>/leaf<r>
//   every leaf ──LEAF_SPINE (× links_per_leaf_and_spine)── every spine<s>
//
// Left out: PCIe switches and CPU sockets (a GPU and its NIC share one, with no other traffic on
// it), dual-port NICs, a third tier of switches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/units/units.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// Defaults are a DGX H100's. "Assumed" marks figures without a public measurement of exactly that
// part; they were chosen so that the sums they enter agree with the source named beside them.
struct RailOptimizedSpec {
  std::string name = "rail-optimized";
  uint32_t servers = 1;
  uint32_t gpus_per_server = 8;                // and as many NICs; NVIDIA DGX H100 user guide
  std::optional<uint32_t> servers_per_leaf{};  // servers in a group of leaves; none: all
  std::optional<uint32_t> spines{};            // none: as many as make the leaves non-blocking
  uint32_t links_per_leaf_and_spine = 1;       // parallel cables

  // A GPU's NVLinks to each NVSwitch: 18 NVLink4 spread 5/4/4/5 over the four of an HGX H100 board,
  // 25 GB/s each way per link (NVIDIA H100 whitepaper, "NVLink"; HGX H100 board layout). Servers
  // with another number of GPUs keep these switches and lanes.
  std::vector<uint32_t> nvlink_lanes = {5, 4, 4, 5};
  uint64_t nvlink_lane_rate_bps = 200'000'000'000;
  // Assumed: SerDes, link layer and the GPU's crossbar, per hop. Two hops and the switch are 500 ns
  // one way, below the 0.6 us that NCCL's tuner allows for an NVLink step of LL, which includes the
  // kernels' stores and polls (src/graph/tuning.cc, hwLat).
  int64_t nvlink_delay_ps = 200 * kPsPerNs;
  int64_t nvswitch_latency_ps = 100 * kPsPerNs;  // assumed

  // PCIe 5.0 x16 carries 63 GB/s each way (32 GT/s, 128b/130b; PCIe Base Specification 5.0). With
  // 256-byte payloads, TLP headers, LCRC and framing, and DLLPs, about 55 GB/s of payload remain,
  // enough for the 49 GB/s a 400 Gb/s NIC delivers.
  uint64_t host_rate_bps = 440'000'000'000;
  // Assumed: PCIe and the DMA engine, one way; half of the 0.9 us PCIe adds to a NIC's round trip
  // (Neugebauer et al.: "Understanding PCIe performance for end host networking", SIGCOMM 2018).
  int64_t host_delay_ps = 450 * kPsPerNs;

  uint64_t nic_rate_bps = 400'000'000'000;
  // 5 m of cable at 5 ns/m, and an assumed 120 ns of RS(544,514) FEC (IEEE 802.3 clause 119: a
  // codeword is received whole before it is corrected).
  int64_t nic_leaf_delay_ps = 145 * kPsPerNs;
  uint64_t leaf_spine_rate_bps = 400'000'000'000;
  int64_t leaf_spine_delay_ps = 270 * kPsPerNs;  // 30 m, and the same FEC
  // Assumed: between the 130 ns of an InfiniBand HDR switch (NVIDIA QM8700 data sheet) and the 0.5
  // us and more of deep Ethernet pipelines.
  int64_t switch_latency_ps = 300 * kPsPerNs;

  // Cables differ in length: each is longer by its own draw from [0, delay_spread_ps), in every
  // tier. The draw is a hash of the cable's index and nothing else, so it is the same in every run.
  int64_t delay_spread_ps = 0;
};

inline constexpr uint32_t kMaxGpusPerServer = 72;  // the largest NVLink island sold (GB200 NVL72)
inline constexpr uint32_t kMaxFabricGpus = 65'536;
inline constexpr uint64_t kMaxFabricCables = 2'000'000;
inline constexpr uint32_t kMaxFabricSpines = 65'536;
inline constexpr uint32_t kMaxParallelCables = 1'024;
inline constexpr uint64_t kMinLinkRateBps = 1'000'000;
inline constexpr uint64_t kMaxLinkRateBps = 100'000'000'000'000;
inline constexpr int64_t kMaxLinkDelayPs = kPsPerSecond;

// What is wrong with one field of a spec; `field` as in railyard.protos.RailOptimized.
struct SpecProblem {
  const char* field;
  std::string what;
};

// Everything that MakeRailOptimized would not accept; empty if it is fine.
std::vector<SpecProblem> CheckRailOptimized(const RailOptimizedSpec& spec);

// The number of spines where the spec leaves it open: a leaf's uplinks carry at least what its NICs
// can send.
uint64_t NonBlockingSpines(const RailOptimizedSpec& spec);

// Precondition: CheckRailOptimized(spec) is empty.
FabricGraph MakeRailOptimized(const RailOptimizedSpec& spec);

}  // namespace railyard
