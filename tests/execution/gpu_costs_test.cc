// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/gpu_costs.h"

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

// nccl_ofi_tuner_compute_cost (aws-ofi-nccl, src/tuner/nccl_ofi_model.c): 20 us, with Simple 3
// more, whatever the algorithm. 1.5 us of them pass on the wire.
TEST(GpuCostsTest, OverEfaAStepTakesWhatAmazonsTunerCounts) {
  GpuCosts costs;
  costs.net = NetPlugin::kAwsLibfabric;
  CommunicatorLayout layout;
  for (const CommunicatorCpu cpu : {CommunicatorCpu::kIntel, CommunicatorCpu::kAmd}) {
    layout.cpu = cpu;
    const ProxyCosts proxy = costs.OfProxy(cpu);
    const auto step_ps = [&](Algorithm algorithm, Protocol protocol) {
      const StepCosts step = costs.Of(layout, {algorithm, protocol});
      return step.network_step_latency_ps + proxy.post_ps + proxy.arrival_ps;
    };
    EXPECT_EQ(step_ps(Algorithm::kTree, Protocol::kLl), 18'500'000);
    EXPECT_EQ(step_ps(Algorithm::kRing, Protocol::kLl128), 18'500'000);
    EXPECT_EQ(step_ps(Algorithm::kRing, Protocol::kSimple), 21'500'000);
    EXPECT_EQ(step_ps(Algorithm::kNvlsTree, Protocol::kSimple), 21'500'000);
  }
}

}  // namespace
}  // namespace railyard
