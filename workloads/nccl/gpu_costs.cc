// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/gpu_costs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "simulator/diagnostics/check.h"
#include "workloads/nccl/aws_libfabric.h"
#include "workloads/nccl/nccl_latencies.h"
#include "workloads/nccl/nccl_tuner.h"
#include "workloads/nccl/nvls_schedule.h"
#include "workloads/nccl/p2p_schedule.h"

namespace railyard {
namespace {

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple

// NCCL's baseLatencies and hwLatencies, in microseconds.
struct LatenciesUs {
  ByProtocol base;
  ByProtocol nvlink;
  ByProtocol pcie;
  ByProtocol network;
};
constexpr LatenciesUs kRing = {
    {6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};
constexpr LatenciesUs kTree = {
    {6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}};
// PAT has only Simple. Algorithms without figures in NCCL take Ring's, because the primitives are
// the same.
constexpr LatenciesUs kPat = {
    {8.0, 8.0, 8.0}, {4.0, 4.0, 4.0}, {4.0, 4.0, 4.0}, {14.0, 14.0, 14.0}};

// CollNet has no base latency, so the launch is subtracted from the latency between servers.
constexpr double kCollnetLaunchUs = 8.4;
constexpr LatenciesUs kCollnetDirect = {{kCollnetLaunchUs, kCollnetLaunchUs, kCollnetLaunchUs},
                                        {3.7, 3.7, 3.7},
                                        {3.7, 3.7, 3.7},
                                        {22.6, 22.6, 22.6}};
constexpr LatenciesUs kCollnetChain = {{kCollnetLaunchUs, kCollnetLaunchUs, kCollnetLaunchUs},
                                       {2.8, 2.8, 2.8},
                                       {2.8, 2.8, 2.8},
                                       {21.6, 21.6, 21.6}};

// MI300X with RCCL (baseLat and tuning_model_5, src/graph/tuning.cc of RCCL), which has LL and
// Simple. A message between servers takes a ring as long as a tree: the 320 us that RCCL states for
// a ring with Simple are no latency.
constexpr ByProtocol kRcclNetworkUs = {10.5, 10.5, 25.0};
constexpr LatenciesUs kRcclRing = {
    {12.0, 12.0, 17.0}, {0.8, 0.8, 2.1}, {2.2, 2.2, 5.7}, kRcclNetworkUs};
constexpr LatenciesUs kRcclTree = {
    {12.0, 12.0, 17.0}, {0.9, 0.9, 2.3}, {2.2, 2.2, 5.7}, kRcclNetworkUs};

// On Blackwell a kernel with LL128 starts as soon as one with LL: one kernel has all protocols.
// NCCL's 14 us were measured on older GPUs, where tables agree with them (ADR 0162).
double BaseUs(const LatenciesUs& latencies, Protocol protocol, size_t generation) {
  const bool as_ll =
      protocol == Protocol::kLl128 && generation == static_cast<size_t>(GpuGeneration::kBlackwell);
  const Protocol row = as_ll ? Protocol::kLl : protocol;
  return latencies.base[static_cast<size_t>(row) - static_cast<size_t>(Protocol::kLl)];
}

const LatenciesUs& LatenciesOf(Algorithm algorithm, bool is_rccl) {
  if (is_rccl) return algorithm == Algorithm::kTree ? kRcclTree : kRcclRing;
  switch (algorithm) {
    case Algorithm::kTree:
      return kTree;
    case Algorithm::kPat:
      return kPat;
    case Algorithm::kCollnetDirect:
      return kCollnetDirect;
    case Algorithm::kCollnetChain:
      return kCollnetChain;
    default:
      return kRing;
  }
}

// Additional time of an NVLink step before Hopper, where NCCL's table has one row for all
// generations. On a DGX A100 an AllReduce of a few bytes on one channel takes 10.0, 13.8, 16.9,
// 20.8, 25.2, 29.5 and 33.7 us with 2 to 8 GPUs, so LL's step takes 1.98 us instead of 0.6
// (NVIDIA/nccl-tests issue 123).
constexpr double kStepBeforeHopperUs = (33.7 - 10.0) / 12 - 0.6;
// Additional time of an NVLink step on Blackwell: 12.83 us with 4 and 23.09 us with 8 B200 of one
// board and NCCL 2.27 (openfabric-systems/simllm pull request 242), so a step takes 1.28 us. With
// kernels of symmetric memory an exchange of 8 bytes takes 2.3 us on H200 and 3 us on B200
// (NVIDIA/nccl issue 1940), so the time is a latency and does not occupy the CTA.
constexpr double kWayOnBlackwellUs = (23.09 - 12.83) / 8 - 0.6;

// Parts of those latencies that pass on the simulated wire: two NVLinks and the NVSwitch; over PCIe
// a switch and a host bridge, and with SHM the way back as well; the path between two NICs over one
// switch.
constexpr double kNvlinkWireUs = 0.5;
constexpr double kPcieWireUs = 1.0;
constexpr double kNetworkWireUs = 1.5;

// An arrival costs half of a post: NCCL's tuner counts three overheads for a ring's step of Simple,
// in which two slices are posted and arrive (ncclTopoTuneModel, src/graph/tuning.cc; ADR 0096).
constexpr double kArrivalShare = 0.5;
// Returns the default time of the proxies of both sides, which the latencies include. A stated time
// replaces it, so slower proxies make messages slower. NCCL's latencies are the same for all CPUs.
double ProxiesUs(CommunicatorCpu cpu) { return (1 + kArrivalShare) * NetOverheadUs(cpu); }

// Throughput of one CTA, in GB/s of payload. LL: llMaxBws for one server, divided by the CTAs of a
// full one: 12, 24, 24 and 32. LL128: half of perChMaxRingLL128Bws, because a channel of NCCL's
// search becomes two CTAs when it is duplicated. Simple before Hopper: half of perChMaxTreeBws for
// one server. Simple on Hopper: NCCL states what a CTA of 16 warps copies, where it rates its
// kernels of symmetric memory (smBw for AllGather and ReduceScatter, src/symmetric.cc, 2.27.3): 44
// GiB/s. Half of the warps move data in each direction (ADR 0102). Simple on Blackwell: two B200
// exchange 697 GB/s with Send and Recv of NCCL 2.27, over 32 channels, where copies reach 780
// (openfabric-systems/simllm pull request 242): a chunk of 512 KiB takes 24.1 us, of which 2.9 pass
// between chunks (ADR 0133). LL on Blackwell: as on Hopper, for the loop has as many threads and
// loads under way; NCCL's 282 GB/s are written as twice Hopper's 141 (ADR 0162).
constexpr double kGiB = 1.073741824;
constexpr double kHopperCopyGbPerS = 44 * kGiB;
constexpr double kBlackwellChunkBytes = 512 << 10;
constexpr double kBlackwellChunkPeriodNs = kBlackwellChunkBytes / (697.0 / 32);
constexpr double kBlackwellOverheadNs = 2.9e3;
constexpr double kBlackwellChunkNs = kBlackwellChunkPeriodNs - kBlackwellOverheadNs;
constexpr std::array<ByProtocol, kGpuGenerationCount> kCtaGbPerS = {{
    {39.0 / 12, 10.0, 26.5 / 2},
    {87.7 / 24, 10.0, 24.0 / 2},
    {141.0 / 24, 36.7 / 2, kHopperCopyGbPerS / 2},
    {141.0 / 24, 40.0 / 2, kBlackwellChunkBytes / kBlackwellChunkNs},
}};

double CtaGbPerS(size_t generation, Protocol protocol) {
  return kCtaGbPerS[generation][static_cast<size_t>(protocol) - static_cast<size_t>(Protocol::kLl)];
}

// Rates of a CTA whose warps copy in parts, in GB/s: smBw of NCCL's AllGather and ReduceScatter
// kernels of symmetric memory, which is of 16 warps that load and store (src/symmetric.cc, 2.27.3;
// src/sym_kernels.cc). A warp has a share of it. On Hopper it is what all parts reach together,
// too.
constexpr std::array<double, kGpuGenerationCount> kCopyCtaGbPerS = {0, 0, kHopperCopyGbPerS,
                                                                    55 * kGiB};
constexpr double WarpGbPerS(size_t generation) { return kCopyCtaGbPerS[generation] / kWarpsOfRate; }
// On Blackwell the 24.1 us in which a channel sends and receives 512 KiB (simllm 242) say what both
// parts reach together: each has nine warps, and moves at their rate while the other part spends
// its 2.9 us between chunks (ADR 0193).
constexpr double kBlackwellPartGbPerS =
    kP2pPartWarps * WarpGbPerS(static_cast<size_t>(GpuGeneration::kBlackwell));
constexpr double kBlackwellPartsGbPerS =
    (kBlackwellChunkBytes - kBlackwellOverheadNs * kBlackwellPartGbPerS) /
    (kBlackwellChunkPeriodNs / 2 - kBlackwellOverheadNs);
constexpr std::array<double, kGpuGenerationCount> kPartsGbPerS = {0, 0, kHopperCopyGbPerS,
                                                                  kBlackwellPartsGbPerS};

// Payload of one iteration of a CTA. LL: 512 threads with 8 bytes each (NCCL_LL_MAX_NTHREADS,
// src/device/prims_ll.h). LL128: 20 warps with 16 lines, of whose 128 bytes 120 are payload
// (NCCL_LL128_MAX_NTHREADS, NCCL_LL128_SHMEM_ELEMS_PER_THREAD, src/device/prims_ll128.h).
constexpr std::array<uint64_t, 3> kIterationBytes = {512ULL * 8, 20ULL * 16 * 120, 0};

// A CTA of 16 warps that loads and stores moves this, in GB/s: smBw of NCCL's AllReduce kernels of
// symmetric memory (src/sym_kernels.cc; src/symmetric.cc in 2.27.3), on Hopper and on Blackwell.
// NVLS's warps have shares of it (ADR 0168).
constexpr std::array<double, kGpuGenerationCount> kLocalCtaGbPerS = {0, 0, 65 * kGiB, 55 * kGiB};
// A warp moves whole hunks of 8 packs of 16 bytes for each of its 32 lanes (reduceCopyPacks,
// src/device/common_kernel.h; ncclCollUnroll, src/include/device.h). An iteration of those 16 warps
// is this.
constexpr double kNvlsIterationBytes = kWarpsOfRate * 8 * 16 * 32;

// Latencies of NVLS: 25 us through one server and 20.9 us for each hop between servers, both
// without a base (hwLat, Simple; 2.28). The launch, which is part of the 25 us, is assumed to be
// that of the other algorithms, four flags and transfers pass on the wire, and the rest is divided
// equally among the hand-overs. In one server there are three: to the warps that leave the data to
// the switch, to those that request its sums, and to those that take the result. Between servers
// there are only the last two (ADR 0133).
constexpr double kNvlsLaunchUs = 8.4;
constexpr double kNvlsHandOversUs = kNvlsUs - kNvlsLaunchUs - 4 * kNvlinkWireUs;
// Even the least call has an iteration in each of its three parts. The latency contains them, and
// they are simulated, so the hand-overs share the rest (ADR 0188).
constexpr double kNvlsIterations = 3;
double NvlsHandOverUs(const CommunicatorLayout& layout, size_t row) {
  const double rate_gb_per_s = kLocalCtaGbPerS[row];
  const double copying_us =
      rate_gb_per_s == 0 ? 0 : kNvlsIterations * kNvlsIterationBytes / rate_gb_per_s / 1e3;
  return (kNvlsHandOversUs - copying_us) / (layout.node_count() == 1 ? 3 : 2);
}
// Returns the first of the three hand-overs, which passes before anything is stored.
double NvlsStartUs(const CommunicatorLayout& layout, size_t row) {
  return kNvlsLaunchUs + (layout.node_count() == 1 ? NvlsHandOverUs(layout, row) : 0);
}
// Maximum throughput of NVLS's channels, in GB/s of a rank's data: nvlsEfficiency x 40 GB/s (80) x
// 2 x 7/8 of each of 8 channels found. For NVLSTree: perChMaxNVLSTreeBws, for two nodes and for
// more. n / 2 (n - 1) of it is AllReduce's data; 16 CTAs (24; 32 between servers) share it.
struct NvlsGbPerS {
  double one_node = 0;
  double two_nodes = 0;
  double more_nodes = 0;
  double ctas = 1;
  double ctas_between_nodes = 1;
};
constexpr std::array<NvlsGbPerS, kGpuGenerationCount> kNvlsGbPerS = {{
    {},
    {},
    {40 * 0.85 * 2 * 7 / 8, 57.7, 45.5, 16, 16},
    {80 * 0.74 * 2 * 7 / 8, 96.0, 80.0, 24, 32},
}};
constexpr double kNvlsGraphChannels = 8;
// The largest round of a channel in one server: the heads' chunks of 128 KiB. NCCL's figure
// includes the overhead of rounds, which is added separately here.
double NvlsRoundBytes(const CommunicatorLayout& layout) {
  const auto ranks = static_cast<uint32_t>(layout.ranks.size());
  return std::min(ranks, kNvlsHeadsMax) * 128.0 * 1024;
}
double NvlsChannelGbPerS(const NvlsGbPerS& row, const CommunicatorLayout& layout,
                         Algorithm algorithm, uint32_t channel_count) {
  const double n = static_cast<double>(layout.ranks.size());
  const uint32_t nodes = layout.node_count();
  const double tree = nodes == 2 ? row.two_nodes : row.more_nodes;
  const double channel = algorithm == Algorithm::kNvls ? row.one_node : tree;
  // More channels share what is a limit of a server's links.
  const double ctas =
      std::max<double>(nodes == 1 ? row.ctas : row.ctas_between_nodes, channel_count);
  return channel * kNvlsGraphChannels * n / (2 * (n - 1)) / ctas;
}

// Sets the rates of NVLS, scaled: the warps move what NCCL states for warps, and a channel's rounds
// keep NCCL's pace of a channel. In one server each round has an overhead, with which the largest
// one takes what NCCL's figure says (ADR 0170).
void SetNvlsRates(double gb_per_s, size_t row, const CommunicatorLayout& layout, double scale,
                  StepCosts& costs) {
  const auto bps = [scale](double rate) {
    return static_cast<uint64_t>(std::llround(rate * scale * 8e9));
  };
  costs.channel_rate_bps = bps(kLocalCtaGbPerS[row]);
  costs.iteration_bytes = static_cast<uint64_t>(kNvlsIterationBytes);
  costs.round_rate_bps = bps(gb_per_s);
  if (layout.node_count() > 1) return;
  const double round_bytes = NvlsRoundBytes(layout);
  const double overhead_ns = NvlsHandOverUs(layout, row) * 1e3;
  costs.round_rate_bps = bps(round_bytes / (round_bytes / gb_per_s - overhead_ns));
  costs.round_overhead_ps = costs.slice_overhead_ps;
}

int64_t Ps(double us) { return std::llround(us * 1e6); }

}  // namespace

StepCosts GpuCosts::Of(const CommunicatorLayout& layout, const ReplayChoice& choice,
                       uint32_t channel_count) const {
  SIM_CHECK(choice.algorithm != Algorithm::kUnstated && choice.protocol != Protocol::kUnstated,
            "the costs of an open choice");
  const auto p = static_cast<size_t>(choice.protocol) - static_cast<size_t>(Protocol::kLl);
  const auto row = static_cast<size_t>(generation.value_or(layout.generation));
  const bool is_rccl = layout.library == CollectiveLibrary::kRccl && !generation;
  const LatenciesUs& latencies = LatenciesOf(choice.algorithm, is_rccl);
  const bool by_switch =
      choice.algorithm == Algorithm::kNvls || choice.algorithm == Algorithm::kNvlsTree;
  const double older_us =
      !is_rccl && row < static_cast<size_t>(GpuGeneration::kHopper) ? kStepBeforeHopperUs : 0;
  StepCosts costs;
  costs.launch_latency_ps = launch_latency_ps.value_or(
      Ps((by_switch ? NvlsStartUs(layout, row) : BaseUs(latencies, choice.protocol, row)) *
         launch_latency_scale));
  // LL and LL128 carry their flags with the data, so there is no fence and no overhead between
  // slices.
  const double local_us = by_switch       ? NvlsHandOverUs(layout, row)
                          : layout.nvlink ? latencies.nvlink[p] - kNvlinkWireUs + older_us
                                          : std::max(0.0, latencies.pcie[p] - kPcieWireUs);
  const double way_us = layout.nvlink && row == static_cast<size_t>(GpuGeneration::kBlackwell)
                            ? kWayOnBlackwellUs
                            : 0;
  costs.nvlink_step_latency_ps =
      nvlink_step_latency_ps.value_or(Ps((local_us + way_us) * step_latency_scale));
  if (choice.protocol == Protocol::kSimple) {
    costs.slice_overhead_ps = nvlink_step_latency_ps.value_or(Ps(local_us * step_latency_scale));
  }
  double network_us = choice.algorithm == Algorithm::kNvls       ? kNvlsNetworkUs
                      : choice.algorithm == Algorithm::kNvlsTree ? kNvlsTreeNetworkUs
                                                                 : latencies.network[p];
  if (net == NetPlugin::kAwsLibfabric) {
    network_us += EfaLatencyUs(layout.generation) - kNetworkWireUs;
  }
  costs.network_step_latency_ps = network_step_latency_ps.value_or(
      Ps(std::max(0.0, network_us - kNetworkWireUs - ProxiesUs(layout.cpu)) * step_latency_scale));
  if (is_rccl) {
    // The rate of a workgroup of RCCL is not published: links are the limit.
    costs.channel_rate_bps = channel_rate_bps.value_or(0);
    return costs;
  }
  costs.iteration_bytes = kIterationBytes[p];
  if (channel_rate_bps) {
    costs.channel_rate_bps = *channel_rate_bps;
  } else if (by_switch) {
    SetNvlsRates(NvlsChannelGbPerS(kNvlsGbPerS[row], layout, choice.algorithm, channel_count), row,
                 layout, channel_rate_scale, costs);
  } else {
    const auto bps = [this](double gb_per_s) {
      return static_cast<uint64_t>(std::llround(gb_per_s * channel_rate_scale * 8e9));
    };
    costs.channel_rate_bps = bps(CtaGbPerS(row, choice.protocol));
    if (choice.protocol == Protocol::kSimple) {
      costs.warp_rate_bps = bps(WarpGbPerS(row));
      costs.parts_rate_bps = bps(kPartsGbPerS[row]);
    }
  }
  return costs;
}

ProxyCosts GpuCosts::OfProxy(CommunicatorCpu cpu) const {
  const int64_t post_ps = proxy_post_latency_ps.value_or(Ps(NetOverheadUs(cpu)));
  const auto arrival_ps = static_cast<int64_t>(static_cast<double>(post_ps) * kArrivalShare);
  const bool has_completions = net == NetPlugin::kAwsLibfabric && !proxy_post_latency_ps;
  return {.post_ps = post_ps,
          .arrival_ps = proxy_arrival_latency_ps.value_or(arrival_ps),
          .completion_ps = has_completions ? Ps(EfaCompletionUs()) : 0};
}

}  // namespace railyard
