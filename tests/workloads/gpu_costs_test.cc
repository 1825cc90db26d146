// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/gpu_costs.h"

#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {
namespace {

// getNetOverhead (src/graph/tuning.cc): 1 us, with AMD's CPUs 2 us. An arrival takes half of it.
TEST(GpuCostsTest, ProxiesTakeTheNetOverheadOfTheirCpu) {
  const GpuCosts costs;
  for (const CommunicatorCpu cpu : {CommunicatorCpu::kIntel, CommunicatorCpu::kArm}) {
    EXPECT_EQ(costs.OfProxy(cpu).post_ps, 1 * kPsPerUs);
    EXPECT_EQ(costs.OfProxy(cpu).arrival_ps, kPsPerUs / 2);
  }
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).post_ps, 2 * kPsPerUs);
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).arrival_ps, 1 * kPsPerUs);
}

TEST(GpuCostsTest, WhatIsStatedHoldsWhateverTheCpu) {
  GpuCosts costs;
  costs.proxy_post_latency_ps = 3 * kPsPerUs;
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).post_ps, 3 * kPsPerUs);
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).arrival_ps, 1'500'000);
  costs.proxy_arrival_latency_ps = 0;
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).arrival_ps, 0);
  costs.proxy_post_latency_ps.reset();
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kAmd).post_ps, 2 * kPsPerUs);
}

TEST(GpuCostsTest, EfaHasCompletionsUnlessThePostIsStated) {
  GpuCosts costs;
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kIntel).completion_ps, 0);
  costs.net = NetPlugin::kAwsLibfabric;
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kIntel).completion_ps, kPsPerUs);
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kIntel).post_ps, kPsPerUs);
  costs.proxy_post_latency_ps = 3 * kPsPerUs;
  EXPECT_EQ(costs.OfProxy(CommunicatorCpu::kIntel).completion_ps, 0);
}

// The wire takes 1.5 us of Ring's 14 us with Simple.
TEST(GpuCostsTest, ProxiesAndTheStepMakeUpNcclsLatency) {
  const GpuCosts costs;
  CommunicatorLayout layout;
  for (const CommunicatorCpu cpu :
       {CommunicatorCpu::kIntel, CommunicatorCpu::kAmd, CommunicatorCpu::kArm}) {
    layout.cpu = cpu;
    const StepCosts step = costs.Of(layout, {Algorithm::kRing, Protocol::kSimple});
    const ProxyCosts proxy = costs.OfProxy(cpu);
    EXPECT_EQ(step.network_step_latency_ps + proxy.post_ps + proxy.arrival_ps, 12'500'000);
    // LL has 2.7 us, less than the wire and AMD's proxies take.
    EXPECT_EQ(costs.Of(layout, {Algorithm::kRing, Protocol::kLl}).network_step_latency_ps, 0);
  }
}

// One kernel has all protocols: LL128's 14 us in NCCL's table are more than its launch on
// Blackwell.
TEST(GpuCostsTest, AKernelIsLaunchedOnBlackwellAsFastWithLl128AsWithLl) {
  CommunicatorLayout layout;
  layout.generation = GpuGeneration::kBlackwell;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    const auto launch_ps = [&](Protocol protocol) {
      return GpuCosts().Of(layout, {algorithm, protocol}).launch_latency_ps;
    };
    EXPECT_EQ(launch_ps(Protocol::kLl128), launch_ps(Protocol::kLl));
  }
  layout.generation = GpuGeneration::kHopper;
  EXPECT_EQ(GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kLl128}).launch_latency_ps,
            14'000'000);
}

// 141 GB/s of 24 CTAs on an H100 server (llMaxBws); Blackwell's loop has as many threads.
TEST(GpuCostsTest, ACtaMovesLinesOfLlOnBlackwellAsFastAsOnHopper) {
  CommunicatorLayout layout;
  layout.generation = GpuGeneration::kBlackwell;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kDirect}) {
    EXPECT_EQ(GpuCosts().Of(layout, {algorithm, Protocol::kLl}).channel_rate_bps, 47'000'000'000u);
  }
}

// RCCL's baseLat and tuning_model_5 (src/graph/tuning.cc): LL 12 and 0.8 us, Simple 17 and 2.1.
TEST(GpuCostsTest, Mi300xHasRcclsLatencies) {
  CommunicatorLayout layout;
  layout.library = CollectiveLibrary::kRccl;
  layout.generation = GpuGeneration::kAmpere;
  const StepCosts ll = GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kLl});
  EXPECT_EQ(ll.launch_latency_ps, 12'000'000);
  EXPECT_EQ(ll.nvlink_step_latency_ps, 300'000);
  EXPECT_EQ(ll.channel_rate_bps, 0u);
  const StepCosts simple = GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kSimple});
  EXPECT_EQ(simple.launch_latency_ps, 17'000'000);
  EXPECT_EQ(simple.slice_overhead_ps, 1'600'000);
}

// NCCL's latencies over InfiniBand (hwLat, src/graph/tuning.cc: 5, 4, 14 and 20.9 us) contain 1.5
// us of wire, for which EFA needs 17.3 on p5. The wire's 1.5 are simulated.
TEST(GpuCostsTest, OverEfaTheWireOfAStepIsLonger) {
  GpuCosts costs;
  costs.net = NetPlugin::kAwsLibfabric;
  CommunicatorLayout layout;
  layout.ranks.resize(8);
  layout.ranks.resize(16, {.node = 1});
  for (const CommunicatorCpu cpu : {CommunicatorCpu::kIntel, CommunicatorCpu::kAmd}) {
    layout.cpu = cpu;
    const ProxyCosts proxy = costs.OfProxy(cpu);
    const auto step_ps = [&](Algorithm algorithm, Protocol protocol) {
      const StepCosts step = costs.Of(layout, {algorithm, protocol});
      return step.network_step_latency_ps + proxy.post_ps + proxy.arrival_ps;
    };
    EXPECT_EQ(step_ps(Algorithm::kTree, Protocol::kLl), 19'300'000);
    EXPECT_EQ(step_ps(Algorithm::kRing, Protocol::kLl128), 18'300'000);
    EXPECT_EQ(step_ps(Algorithm::kRing, Protocol::kSimple), 28'300'000);
    EXPECT_EQ(step_ps(Algorithm::kNvlsTree, Protocol::kSimple), 35'200'000);
  }
}

// NCCL's 25 us (hwLat, NVLS) are the launch of the other algorithms, three hand-overs, of which the
// first is in the launch, three iterations of 4 KiB a warp, and four times 0.5 us on the wire.
// Between servers there are two hand-overs.
TEST(GpuCostsTest, NvlsTakesNcclsLatencyOverall) {
  CommunicatorLayout layout;
  layout.ranks.resize(8);
  const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kNvls, Protocol::kSimple});
  EXPECT_EQ(costs.iteration_bytes, 16u * 4096);
  const double iteration_ps = 16.0 * 4096 / (65.0 * (1 << 30)) * 1e12;
  EXPECT_NEAR(static_cast<double>(costs.launch_latency_ps + 2 * costs.nvlink_step_latency_ps) +
                  3 * iteration_ps,
              23e6, 4);
  EXPECT_EQ(costs.launch_latency_ps - 8'400'000, costs.nvlink_step_latency_ps);
  layout.ranks.resize(16, {.node = 1});
  const StepCosts tree = GpuCosts().Of(layout, {Algorithm::kNvlsTree, Protocol::kSimple});
  EXPECT_EQ(tree.launch_latency_ps, 8'400'000);
  EXPECT_NEAR(static_cast<double>(tree.nvlink_step_latency_ps), 7.3e6 - 1.5 * iteration_ps, 2);
}

// perChMaxNVLSTreeBws (src/graph/tuning.cc): 57.7 GB/s of bus bandwidth for each of the 8 channels
// of two H100 servers and 45.5 for more, over 16 CTAs. smBw (src/sym_kernels.cc): 65 GiB/s.
TEST(GpuCostsTest, NvlsBetweenServersHasARateOfItsWarpsAndAPaceOfItsRounds) {
  for (const uint32_t servers : {2u, 3u}) {
    CommunicatorLayout layout;
    for (uint32_t i = 0; i < 8 * servers; ++i) layout.ranks.push_back({.node = i / 8});
    const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kNvlsTree, Protocol::kSimple});
    EXPECT_NEAR(static_cast<double>(costs.channel_rate_bps), 65.0 * (1 << 30) * 8, 4);
    const double ranks = 8.0 * servers;
    const double data_gb_per_s = (servers == 2 ? 57.7 : 45.5) / 2 * ranks / (2 * (ranks - 1));
    EXPECT_NEAR(static_cast<double>(costs.round_rate_bps), data_gb_per_s * 8e9, 1);
    EXPECT_EQ(costs.round_overhead_ps, 0);
  }
  GpuCosts stated;
  stated.channel_rate_bps = 1'000;
  CommunicatorLayout two_servers;
  two_servers.ranks.resize(8);
  two_servers.ranks.resize(16, {.node = 1});
  EXPECT_EQ(stated.Of(two_servers, {Algorithm::kNvlsTree, Protocol::kSimple}).round_rate_bps, 0u);
}

// nvlsEfficiency (src/graph/tuning.cc): 2 x 7/8 x 0.85 of 40 GB/s for each of 8 channels, over 16
// CTAs. The largest round, 128 KiB of every head, takes what this says, its overhead included.
TEST(GpuCostsTest, TheLargestRoundOfNvlsInOneServerKeepsNcclsPace) {
  for (const uint32_t heads : {4u, 8u}) {
    CommunicatorLayout layout;
    layout.ranks.resize(heads);
    const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kNvls, Protocol::kSimple});
    EXPECT_NEAR(static_cast<double>(costs.channel_rate_bps), 65.0 * (1 << 30) * 8, 4);
    EXPECT_EQ(costs.round_overhead_ps, costs.slice_overhead_ps);
    const double data_gb_per_s = 40 * 0.85 * 2 * 7 / 8 / 2 * heads / (2 * (heads - 1.0));
    const double round_bytes = heads << 17;
    EXPECT_NEAR(static_cast<double>(costs.round_overhead_ps) +
                    round_bytes * 8e12 / static_cast<double>(costs.round_rate_bps),
                round_bytes / data_gb_per_s * 1e3, 10);
  }
}

// nvlsEfficiency is a share of a server's links: 32 channels of NCCL 2.26 have together what 24
// have.
TEST(GpuCostsTest, MoreChannelsOfNvlsShareNcclsPace) {
  CommunicatorLayout layout;
  layout.ranks.resize(8);
  layout.generation = GpuGeneration::kBlackwell;
  const ReplayChoice nvls{Algorithm::kNvls, Protocol::kSimple};
  const auto round_ps = [&](uint32_t channels) {
    const StepCosts costs = GpuCosts().Of(layout, nvls, channels);
    return static_cast<double>(costs.round_overhead_ps) +
           (1 << 20) * 8e12 / static_cast<double>(costs.round_rate_bps);
  };
  EXPECT_NEAR(round_ps(32), round_ps(24) * 32 / 24, 10);
  EXPECT_EQ(round_ps(16), round_ps(24));
  EXPECT_EQ(round_ps(0), round_ps(24));
}

// Eight steps of LL are between 12.83 us of four and 23.09 us of eight B200 (simllm 242), twelve
// between 10.0 of two and 33.7 of eight A100 (nccl-tests 123). The wire takes 0.5 us of each.
TEST(GpuCostsTest, StepsTakeAsLongAsMeasuredOfTheGeneration) {
  CommunicatorLayout layout;
  const auto step_us = [&](GpuGeneration generation) {
    layout.generation = generation;
    const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kLl});
    return static_cast<double>(costs.nvlink_step_latency_ps) / 1e6 + 0.5;
  };
  EXPECT_NEAR(step_us(GpuGeneration::kAmpere), 23.7 / 12, 1e-5);
  EXPECT_NEAR(step_us(GpuGeneration::kHopper), 0.6, 1e-5);
  EXPECT_NEAR(step_us(GpuGeneration::kBlackwell), 10.26 / 8, 1e-5);
  // With Simple a CTA of Blackwell spends no longer between two slices than one of Hopper.
  const auto overhead_ps = [&](GpuGeneration generation) {
    layout.generation = generation;
    return GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kSimple}).slice_overhead_ps;
  };
  EXPECT_EQ(overhead_ps(GpuGeneration::kBlackwell), overhead_ps(GpuGeneration::kHopper));
}

// 32 channels of two B200 exchange 697 GB/s: 512 KiB each in 24.07 us, 2.9 of which pass between
// two chunks (simllm 242).
TEST(GpuCostsTest, ChannelsOfBlackwellExchangeWhatWasMeasured) {
  CommunicatorLayout layout;
  layout.generation = GpuGeneration::kBlackwell;
  const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kRing, Protocol::kSimple});
  const double chunk_us = 512 * 1024 * 8e6 / static_cast<double>(costs.channel_rate_bps) +
                          static_cast<double>(costs.slice_overhead_ps) / 1e6;
  EXPECT_NEAR(32 * 512 * 1024 / chunk_us / 1e3, 697, 0.1);
}

// Two parts of nine warps, each a sixteenth of 55 GiB/s, take these 24.07 us, too, for 512
// KiB if each moves alone while the other spends its 2.9 us, and both share their limit otherwise.
TEST(GpuCostsTest, SendAndReceiveOfBlackwellTogetherTakeWhatWasMeasured) {
  CommunicatorLayout layout;
  layout.generation = GpuGeneration::kBlackwell;
  const StepCosts costs = GpuCosts().Of(layout, {Algorithm::kDirect, Protocol::kSimple});
  const auto warp_bps = static_cast<double>(costs.warp_rate_bps);
  EXPECT_NEAR(warp_bps, 55.0 / 16 * (1 << 30) * 8, 1);
  const double period_s = 512 * 1024 / (697e9 / 32);
  const double overhead_s = static_cast<double>(costs.slice_overhead_ps) / 1e12;
  const double both_s = period_s - 2 * overhead_s;
  EXPECT_NEAR(2 * overhead_s * 9 * warp_bps + both_s * static_cast<double>(costs.parts_rate_bps),
              2 * 512 * 1024 * 8, 1);
}

// On Hopper both are of the 44 GiB/s that a CTA of 16 warps copies. Before, no figure is known.
// Only Simple has parts: of LL's only the rate of a whole CTA is known.
TEST(GpuCostsTest, PartsOfACtaAreThoseOfNcclsCopies) {
  CommunicatorLayout layout;
  const auto costs_of = [&](Protocol protocol) {
    return GpuCosts().Of(layout, {Algorithm::kDirect, protocol});
  };
  layout.generation = GpuGeneration::kHopper;
  EXPECT_NEAR(static_cast<double>(costs_of(Protocol::kSimple).parts_rate_bps), 44.0 * (1 << 30) * 8,
              1);
  EXPECT_NEAR(static_cast<double>(costs_of(Protocol::kSimple).warp_rate_bps),
              44.0 / 16 * (1 << 30) * 8, 1);
  EXPECT_EQ(costs_of(Protocol::kLl).parts_rate_bps, 0u);
  layout.generation = GpuGeneration::kAmpere;
  EXPECT_EQ(costs_of(Protocol::kSimple).parts_rate_bps, 0u);
  layout.generation = GpuGeneration::kHopper;
  GpuCosts stated;
  stated.channel_rate_bps = 1'000;
  EXPECT_EQ(stated.Of(layout, {Algorithm::kDirect, Protocol::kSimple}).parts_rate_bps, 0u);
}

}  // namespace
}  // namespace railyard
