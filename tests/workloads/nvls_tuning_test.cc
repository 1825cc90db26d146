// SPDX-License-Identifier: GPL-2.0-only
// Expected values: NCCL's src/transport/nvls.cc.
#include "workloads/nccl/nvls_tuning.h"

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"

namespace railyard {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint32_t kTuned = 23007;

CommunicatorLayout Blackwells(uint32_t nodes, uint32_t gpus, uint64_t nic_gbps,
                              CommunicatorCpu cpu = CommunicatorCpu::kIntel) {
  CommunicatorLayout layout = testing::Nodes(nodes, gpus, 72);
  layout.generation = GpuGeneration::kBlackwell;
  layout.nic_bps = nic_gbps * 1'000'000'000;
  layout.cpu = cpu;
  return layout;
}

NvlsTuning Tuned(const CommunicatorLayout& layout, uint32_t version = kTuned) {
  NcclSettings settings;
  settings.version = version;
  return NvlsTuningOf(layout, static_cast<uint32_t>(layout.ranks.size()) / layout.node_count(),
                      settings);
}

void Expect(const NvlsTuning& tuning, uint32_t channels, uint64_t chunk_kib, uint64_t tree_kib) {
  EXPECT_EQ(tuning.channel_count, channels);
  EXPECT_EQ(tuning.chunk_bytes, chunk_kib * kKiB);
  EXPECT_EQ(tuning.tree_chunk_bytes_max, tree_kib * kKiB);
}

TEST(NvlsTuningTest, HopperHasSixteenChannels) {
  CommunicatorLayout layout = testing::Nodes(2, 8);
  Expect(Tuned(layout), 16, 128, 128);
  layout = testing::Nodes(4, 8);
  Expect(Tuned(layout), 16, 128, 64);
}

// NVLSTree's chunks are those of Simple up to 2.20, and limited on four nodes from 2.19 on.
TEST(NvlsTuningTest, TreesHadTheChunksOfSimpleBefore221) {
  EXPECT_EQ(Tuned(testing::Nodes(2, 8), 22105).tree_chunk_bytes, 128 * kKiB);
  for (const uint32_t version : {21805u, 21903u, 22003u}) {
    const NvlsTuning tuning = Tuned(testing::Nodes(2, 8), version);
    EXPECT_EQ(tuning.chunk_bytes, 128 * kKiB);
    EXPECT_EQ(tuning.tree_chunk_bytes, 512 * kKiB);
    EXPECT_EQ(tuning.tree_chunk_bytes_max, 512 * kKiB);
  }
  EXPECT_EQ(Tuned(testing::Nodes(4, 8), 21903).tree_chunk_bytes_max, 64 * kKiB);
  EXPECT_EQ(Tuned(testing::Nodes(4, 8), 21805).tree_chunk_bytes_max, 512 * kKiB);
}

TEST(NvlsTuningTest, BlackwellHasMoreBetweenNodesThanInOne) {
  EXPECT_EQ(Tuned(Blackwells(1, 8, 400)).channel_count, 24u);
  Expect(Tuned(Blackwells(2, 8, 400), 22705), 32, 128, 128);
  Expect(Tuned(Blackwells(4, 8, 400), 22705), 32, 128, 64);
}

// 2.26.2 has NVLS_NCHANNELS_SM100 = 32 alone; later versions have NVLS_NCHANNELS_SM100_NVL = 24 for
// one NVLink domain.
TEST(NvlsTuningTest, OneNodeOfBlackwellHasFewerChannelsFrom227On) {
  for (const uint32_t gpus : {8u, 72u}) {
    EXPECT_EQ(Tuned(Blackwells(1, gpus, 400), 22602).channel_count, 32u);
    EXPECT_EQ(Tuned(Blackwells(1, gpus, 400), 22703).channel_count, 24u);
  }
  EXPECT_EQ(Tuned(testing::Nodes(1, 8), 22602).channel_count, 16u);
}

TEST(NvlsTuningTest, From230OnTreesAreTunedByNodesGpusAndNics) {
  Expect(Tuned(Blackwells(2, 4, 400)), 32, 256, 256);
  Expect(Tuned(Blackwells(2, 8, 400)), 32, 128, 64);
  Expect(Tuned(Blackwells(2, 8, 400, CommunicatorCpu::kArm)), 32, 128, 128);
  Expect(Tuned(Blackwells(2, 8, 800)), 32, 128, 128);
  Expect(Tuned(Blackwells(2, 72, 400, CommunicatorCpu::kArm)), 32, 128, 64);
  Expect(Tuned(Blackwells(4, 8, 400)), 24, 128, 64);
  Expect(Tuned(Blackwells(4, 36, 400, CommunicatorCpu::kArm)), 24, 128, 128);
  Expect(Tuned(Blackwells(4, 8, 800)), 24, 256, 256);
  Expect(Tuned(Blackwells(4, 16, 800)), 32, 128, 128);
  Expect(Tuned(Blackwells(4, 72, 800)), 32, 128, 64);
  // Slower NICs are not tuned for.
  Expect(Tuned(Blackwells(2, 8, 200)), 32, 128, 128);
}

TEST(NvlsTuningTest, WhatIsSetGoesBeforeWhatIsTuned) {
  NcclSettings settings;
  settings.version = kTuned;
  settings.nvls_chunksize_bytes = 512 * kKiB;
  settings.max_nchannels = 8;
  Expect(NvlsTuningOf(Blackwells(4, 8, 800), 8, settings), 8, 512, 256);
  settings.nvlstree_max_chunksize_bytes = 32 * kKiB;
  settings.min_nchannels = 40;
  settings.max_nchannels = 0;
  Expect(NvlsTuningOf(Blackwells(4, 8, 800), 8, settings), 40, 512, 32);
}

}  // namespace
}  // namespace railyard
