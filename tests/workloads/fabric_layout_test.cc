// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/layout/fabric_layout.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/gpus.h"
#include "topologies/generators/rail_optimized.h"

namespace railyard {
namespace {

using testing::Gpus;

// A server for each, of eight GPUs.
FabricGraph ServersWith(const std::vector<CpuVendor>& cpus) {
  RailOptimizedSpec spec;
  for (const CpuVendor cpu : cpus) {
    spec.mixed_servers.emplace_back();
    spec.mixed_servers.back().cpu = cpu;
  }
  return MakeRailOptimized(spec);
}

// NCCL calls vendors that differ mixed, among the ranks of a communicator.
TEST(CommunicatorLayoutTest, CpusAreThoseOfItsOwnRanks) {
  const FabricGraph graph = ServersWith(
      {CpuVendor::kIntel, CpuVendor::kAmd, CpuVendor::kAmd, CpuVendor::kArm, CpuVendor::kUnknown});
  const auto cpu_of = [&](const std::vector<GpuIndex>& gpus) { return LayoutOf(graph, gpus).cpu; };
  EXPECT_EQ(cpu_of(Gpus({0, 7})), CommunicatorCpu::kIntel);
  EXPECT_EQ(cpu_of(Gpus({8, 16})), CommunicatorCpu::kAmd);
  EXPECT_EQ(cpu_of(Gpus({24})), CommunicatorCpu::kArm);
  EXPECT_EQ(cpu_of(Gpus({0, 8})), CommunicatorCpu::kMixed);
  EXPECT_EQ(cpu_of(Gpus({8, 24})), CommunicatorCpu::kMixed);
  // Not known counts as Intel's.
  EXPECT_EQ(cpu_of(Gpus({32})), CommunicatorCpu::kIntel);
  EXPECT_EQ(cpu_of(Gpus({0, 32})), CommunicatorCpu::kIntel);
  EXPECT_EQ(cpu_of(Gpus({8, 32})), CommunicatorCpu::kMixed);
}

// With eight GPUs on four NICs, GPU i has NIC i modulo 4.
TEST(CommunicatorLayoutTest, NicsAreSharedByTheRanksThatHaveTheSame) {
  RailOptimizedSpec spec;
  spec.mixed_servers.resize(2);
  for (ServerSpec& server : spec.mixed_servers) server.nics = 4;
  const FabricGraph graph = MakeRailOptimized(spec);
  EXPECT_EQ(LayoutOf(graph, Gpus({0, 1, 2, 3, 4, 8, 9, 10, 11, 12})).gpus_per_nic, 2u);
  EXPECT_EQ(LayoutOf(graph, Gpus({0, 1, 2, 3, 8, 9, 10, 11})).gpus_per_nic, 1u);
  EXPECT_EQ(LayoutOf(ServersWith({CpuVendor::kIntel}), Gpus({0, 1, 7})).gpus_per_nic, 1u);
}

}  // namespace
}  // namespace railyard
