// SPDX-License-Identifier: GPL-2.0-only
// Expected values: NCCL's constants, and calcCollChunking (src/enqueue.cc) followed by hand.
#include "workloads/nccl/nccl_chunking.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

TEST(NcclChunkingTest, SlotsAreAnEighthOfABuffer) {
  NcclSettings settings;
  EXPECT_EQ(SlotRuleOf(Protocol::kSimple, settings).payload_bytes, 512 * kKiB);
  settings.buffsize_bytes = 8 * kMiB;
  EXPECT_EQ(SlotRuleOf(Protocol::kSimple, settings).payload_bytes, kMiB);
  for (const auto& [protocol, wire_bytes] :
       {std::pair{Protocol::kLl, 64 * kKiB}, std::pair{Protocol::kLl128, uint64_t{614'400}}}) {
    const SlotRule slot = SlotRuleOf(protocol, settings);
    EXPECT_EQ(slot.payload_bytes / slot.line_payload_bytes * slot.line_wire_bytes, wire_bytes);
  }
}

TEST(NcclChunkingTest, RingsWithSimpleSendTwoSlicesOfTwoSlots) {
  const SlotRule slot = SlotRuleOf(Protocol::kSimple, {});
  const ReplayChoice ring = {Algorithm::kRing, Protocol::kSimple};
  const StepsRule steps = StepsRuleOf(CollectiveKind::kAllReduce, ring);
  EXPECT_EQ(steps.slots_per_chunk * slot.payload_bytes, 2 * kMiB);
  const MessageRule rule = MessageRuleOf(steps, slot, 4);
  EXPECT_EQ(rule.slices_per_chunk, 2u);
  EXPECT_EQ(rule.slice_bytes_min, 32 * kKiB);
  EXPECT_EQ(rule.in_flight_messages, 4u);
  const StepsRule broadcast = StepsRuleOf(CollectiveKind::kBroadcast, ring);
  EXPECT_EQ(broadcast.slots_per_chunk, 1u);
  EXPECT_EQ(MessageRuleOf(broadcast, slot, 4).in_flight_messages, 8u);
}

TreeRule TreesOf(Protocol protocol, double nodes, uint32_t version = 22705) {
  return {.protocol = protocol, .ranks_per_node = 8, .nodes = nodes, .version = version};
}

// Two nodes of eight: 1 + 1 + 0.8 levels, so 22.4 chunks while they are more than 128 KiB,
// then 5.6.
TEST(NcclChunkingTest, TreesWithLl128FillTheirLevels) {
  const auto chunk = [](uint64_t share_bytes) {
    return TreeChunkBytes(share_bytes, 576'000, TreesOf(Protocol::kLl128, 2));
  };
  EXPECT_EQ(chunk(64 * kMiB), 576'000u);
  EXPECT_EQ(chunk(8 * kMiB), 288'000u);
  EXPECT_EQ(chunk(1 * kMiB), 72'000u);
  EXPECT_EQ(chunk(256 * kKiB), 36'000u);
  EXPECT_EQ(chunk(8), 18'000u);  // no more than 32 KiB is left
  EXPECT_EQ(TreeChunkBytes(8, 512 * kKiB, TreesOf(Protocol::kSimple, 2)), 512 * kKiB);
}

// With one GPU on each of three servers it takes 34 chunks, more than 16 x 2.1, of a channel's
// share to keep 36,000 bytes: a quarter of 4.5 MiB has 32, of 4,800 KiB 34. So many fewer messages
// are why the larger AllReduce is faster.
TEST(NcclChunkingTest, ATreesChunksDoubleWhereAShareHasEnoughOfThem) {
  const auto chunk = [](uint64_t bytes) {
    return TreeChunkBytes(
        bytes / 4, 576'000,
        {.protocol = Protocol::kLl128, .ranks_per_node = 1, .nodes = 3, .version = 22705});
  };
  EXPECT_EQ(chunk(4'608 * kKiB), 18'000u);
  EXPECT_EQ(chunk(uint64_t{4} * 34 * 36'000 - 4), 18'000u);
  EXPECT_EQ(chunk(uint64_t{4} * 34 * 36'000), 36'000u);
  EXPECT_EQ(chunk(4'800 * kKiB), 36'000u);
  EXPECT_EQ(chunk(9 * kMiB), 36'000u);
  EXPECT_EQ(chunk(10 * kMiB), 72'000u);
}

// 2.19.3: two nodes of eight have a depth of 7 + 1, so 64 chunks of more than 128 KiB, 32 of more
// than 64 and 8 of more than 32. From 2.20 on chunks are whole slots, and LL never has smaller
// ones.
TEST(NcclChunkingTest, TreesWithSimpleFillTheirDepthBefore220) {
  const auto chunk = [](uint64_t share_bytes, uint32_t version = 21903) {
    return TreeChunkBytes(share_bytes, 512 * kKiB, TreesOf(Protocol::kSimple, 2, version));
  };
  EXPECT_EQ(chunk(32 * kMiB), 512 * kKiB);
  EXPECT_EQ(chunk(32 * kMiB - 1), 256 * kKiB);
  EXPECT_EQ(chunk(16 * kMiB - 1), 128 * kKiB);
  EXPECT_EQ(chunk(4 * kMiB), 128 * kKiB);
  EXPECT_EQ(chunk(4 * kMiB - 1), 64 * kKiB);
  EXPECT_EQ(chunk(512 * kKiB), 64 * kKiB);
  EXPECT_EQ(chunk(512 * kKiB - 1), 32 * kKiB);
  EXPECT_EQ(chunk(8), 32 * kKiB);
  EXPECT_EQ(chunk(8, 22003), 512 * kKiB);
  EXPECT_EQ(TreeChunkBytes(8, 32 * kKiB, TreesOf(Protocol::kLl, 2, 21903)), 32 * kKiB);
}

TEST(NcclChunkingTest, PatHas32ChunksOrSixteen) {
  EXPECT_EQ(PatChunkBytes(512 * kKiB, 8 * kMiB, CollectiveKind::kAllGather), 256 * kKiB);
  EXPECT_EQ(PatChunkBytes(512 * kKiB, 8 * kMiB, CollectiveKind::kReduceScatter), 512 * kKiB);
  EXPECT_EQ(PatChunkBytes(512 * kKiB, 8, CollectiveKind::kAllGather), 64 * kKiB);
}

// 64 rounds of eight heads, then 8, then 2.
TEST(NcclChunkingTest, NvlsShrinksWithTheMessage) {
  EXPECT_EQ(NvlsChunkBytes(128 * kKiB, 64 * kMiB, 8), 128 * kKiB);
  EXPECT_EQ(NvlsChunkBytes(128 * kKiB, 64 * kMiB - 1, 8), 64 * kKiB);
  EXPECT_EQ(NvlsChunkBytes(128 * kKiB, 4 * kMiB, 8), 64 * kKiB);
  EXPECT_EQ(NvlsChunkBytes(128 * kKiB, 4 * kMiB - 1, 8), 32 * kKiB);
  EXPECT_EQ(NvlsChunkBytes(128 * kKiB, 512 * kKiB - 1, 8), 16 * kKiB);
}

// 16 channels of 8 heads: 32 rounds of 512 KiB, 16 of 256, 4 of 128, one of 64.
TEST(NcclChunkingTest, NvlsTreeShrinksWithTheMessage) {
  EXPECT_EQ(NvlsTreeChunkBytes(512 * kKiB, 2048 * kMiB, 128), 512 * kKiB);
  EXPECT_EQ(NvlsTreeChunkBytes(512 * kKiB, 2048 * kMiB - 1, 128), 256 * kKiB);
  EXPECT_EQ(NvlsTreeChunkBytes(512 * kKiB, 512 * kMiB - 1, 128), 128 * kKiB);
  EXPECT_EQ(NvlsTreeChunkBytes(128 * kKiB, 64 * kMiB, 128), 128 * kKiB);
  EXPECT_EQ(NvlsTreeChunkBytes(128 * kKiB, 64 * kMiB - 1, 128), 64 * kKiB);
  EXPECT_EQ(NvlsTreeChunkBytes(128 * kKiB, 8 * kMiB - 1, 128), 32 * kKiB);
}

// CollNetDirect, 16 channels of 8 heads and a depth of 2: 64 MiB are one round of 512 KiB, four of
// 128, eight of 64, and want 128, 16 and 16.
TEST(NcclChunkingTest, CollNetWantsRoundsForItsDepth) {
  const auto chunk_bytes = [](uint64_t bytes) {
    return CollnetChunkBytes(512 * kKiB, {.bytes = bytes, .chunks = 128, .depth = 2, .fewest = 16});
  };
  EXPECT_EQ(chunk_bytes(64 * kMiB), 32 * kKiB);
  EXPECT_EQ(chunk_bytes(256 * kMiB), 128 * kKiB);
}

}  // namespace
}  // namespace railyard
