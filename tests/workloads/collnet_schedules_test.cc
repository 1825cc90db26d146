// SPDX-License-Identifier: GPL-2.0-only
// CollNet's schedules: bytes per rank and NIC by their closed forms, chunks by NCCL's rule.
#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Nodes;

constexpr uint64_t kMiB = 1 << 20;

NcclPlanner Planner(uint32_t nodes, uint32_t gpus) {
  NcclSettings settings;
  settings.collnet_enable = true;
  return NcclPlanner(Nodes(nodes, gpus), settings);
}

// Makes a collective of a vector of so many bytes, or of a rank's block.
JobCollective Collective(CollectiveKind kind, uint64_t bytes) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = bytes;
  collective.bytes = bytes;
  collective.datatype = Datatype::kInt8;
  return collective;
}
JobCollective AllReduce(uint64_t bytes) { return Collective(CollectiveKind::kAllReduce, bytes); }

// Bytes that a rank sends to the network, receives from it, and sends within its server.
struct Volume {
  uint64_t network_out = 0;
  uint64_t network_in = 0;
  uint64_t nvlink_out = 0;
};
Volume VolumeOf(const CollectiveSchedule& schedule, uint32_t number) {
  const RankIndex rank{number};
  Volume volume;
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t i = 0; i < schedule.LaneCount(rank, channel, 0); ++i) {
      const LaneId lane{rank, channel, 0, i};
      const LanePeers peers = schedule.PeersOf(lane);
      for (uint64_t at = 0; at < schedule.StepCount(lane); ++at) {
        const Step step = schedule.StepAt(lane, at);
        const auto add = [&](int32_t named, const std::vector<LanePeer>& listed, uint64_t& network,
                             uint64_t& nvlink) {
          for (const LanePeer& peer : listed) {
            if (named != kAllPeers && named != static_cast<int32_t>(peer.rank)) continue;
            if (peer.use != ConnectionUse::kNetworkSum) nvlink += step.bytes;
            if (peer.use != ConnectionUse::kNetworkSum || peer.rank != rank) continue;
            // Blocks of its own and of others, as far as they have a payload.
            const bool own_alone = &network == &volume.network_out ? step.gathers : step.scatters;
            network += own_alone ? OwnedPieceOf(step, listed, rank).bytes : step.bytes;
          }
        };
        uint64_t not_counted = 0;
        add(step.send_to, peers.send_to, volume.network_out, volume.nvlink_out);
        add(step.recv_from, peers.recv_from, volume.network_in, not_counted);
      }
    }
  }
  return volume;
}

// S / heads out of each head's NIC and into it, however many servers; over NVLink to each other
// head its slice, and the own slice's sum to each.
TEST(CollnetSchedulesTest, DirectSendsOneSliceToTheNetwork) {
  for (const uint32_t nodes : {2u, 5u}) {
    const NcclPlanner planner = Planner(nodes, 8);
    const auto schedule =
        planner.Plan(AllReduce(256 * kMiB), {Algorithm::kCollnetDirect, Protocol::kSimple});
    for (uint32_t rank = 0; rank < nodes * 8; rank += 3) {
      const Volume volume = VolumeOf(*schedule, rank);
      EXPECT_EQ(volume.network_out, 32 * kMiB);
      EXPECT_EQ(volume.network_in, 32 * kMiB);
      EXPECT_EQ(volume.nvlink_out, uint64_t{2} * 7 * 32 * kMiB);
    }
  }
}

TEST(CollnetSchedulesTest, NvlsSendsOneSliceToTheNetwork) {
  const auto schedule =
      Planner(4, 8).Plan(AllReduce(256 * kMiB), {Algorithm::kNvls, Protocol::kSimple});
  for (const uint32_t rank : {0u, 9u, 31u}) {
    const Volume volume = VolumeOf(*schedule, rank);
    EXPECT_EQ(volume.network_out, 32 * kMiB);
    EXPECT_EQ(volume.network_in, 32 * kMiB);
  }
}

// A chain's channels have their heads on the GPUs in turn: S / GPUs through each NIC again. Over
// NVLink a rank sends a channel's data up, but its head, and down, but its last: 2 (g - 1) / g of
// S.
TEST(CollnetSchedulesTest, ChainsHaveTheirHeadsInTurn) {
  const auto schedule =
      Planner(3, 8).Plan(AllReduce(256 * kMiB), {Algorithm::kCollnetChain, Protocol::kSimple});
  for (const uint32_t rank : {0u, 11u, 23u}) {
    const Volume volume = VolumeOf(*schedule, rank);
    EXPECT_EQ(volume.network_out, 32 * kMiB);
    EXPECT_EQ(volume.network_in, 32 * kMiB);
    EXPECT_EQ(volume.nvlink_out, uint64_t{2} * 7 * 32 * kMiB);
  }
}

// For blocks of B bytes on N servers of g GPUs, an AllGather sends B out of a NIC and N B into it,
// and a ReduceScatter the other way round; over NVLink N B go to or from each other GPU. Covers
// blocks of one chunk, several in a chunk, and several chunks in one.
TEST(CollnetSchedulesTest, DirectGathersAndScattersRails) {
  for (const uint32_t nodes : {2u, 5u}) {
    const NcclPlanner planner = Planner(nodes, 8);
    for (const uint64_t block : {32u << 10, 1'000u, 3u << 20}) {
      for (const CollectiveKind kind :
           {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const auto schedule =
            planner.Plan(Collective(kind, block), {Algorithm::kCollnetDirect, Protocol::kSimple});
        const bool gathers = kind == CollectiveKind::kAllGather;
        for (uint32_t rank = 0; rank < nodes * 8; rank += 3) {
          const Volume volume = VolumeOf(*schedule, rank);
          EXPECT_EQ(volume.network_out, gathers ? block : nodes * block);
          EXPECT_EQ(volume.network_in, gathers ? nodes * block : block);
          EXPECT_EQ(volume.nvlink_out, uint64_t{7} * nodes * block);
        }
      }
    }
  }
}

// A rail of 5 blocks of 10 000 B in chunks of 32 KiB: three blocks, then two, on channels 0 and 1.
TEST(CollnetSchedulesTest, SmallBlocksShareAChunk) {
  const auto schedule = Planner(5, 8).Plan(Collective(CollectiveKind::kAllGather, 10'000),
                                           {Algorithm::kCollnetDirect, Protocol::kSimple});
  const Step first = schedule->StepAt({RankIndex{8}, 0, 0, 0}, 0);
  EXPECT_EQ(first.pieces, 3u);
  EXPECT_EQ(first.bytes, 30'000u);
  EXPECT_EQ(first.owner, 0);
  EXPECT_EQ(first.stride_bytes, 80'000u);
  const Step second = schedule->StepAt({RankIndex{8}, 1, 0, 0}, 0);
  EXPECT_EQ(second.pieces, 2u);
  EXPECT_EQ(second.owner, 24);
  EXPECT_EQ(second.offset_bytes, 240'000u);
  EXPECT_EQ(schedule->BatchCount(RankIndex{8}, 2), 0u);
  // Rank 8's is the second of the first three; of the others it has none.
  const std::vector<LanePeer> rail = schedule->PeersOf({RankIndex{8}, 0, 0, 0}).send_to;
  EXPECT_EQ(OwnedPieceOf(first, rail, RankIndex{8}).offset_bytes, 80'000u);
  EXPECT_EQ(OwnedPieceOf(first, rail, RankIndex{8}).bytes, 10'000u);
  EXPECT_EQ(OwnedPieceOf(second, rail, RankIndex{8}).bytes, 0u);
}

// calcCollChunking: 16 channels and 8 heads work on 128 chunks at a time, two deep. 64 x 2 rounds
// of 512 KiB are 8 GiB; below that 256, then 128 KiB; below 8 x 2 rounds of 128 KiB, 256 MiB, 64
// KiB, and below 16 rounds of 64 KiB, 128 MiB, 32 KiB.
TEST(CollnetSchedulesTest, DirectTakesSmallerChunksForLess) {
  const NcclPlanner planner = Planner(2, 8);
  const auto chunk_bytes = [&](uint64_t bytes) {
    return planner.Plan(AllReduce(bytes), {Algorithm::kCollnetDirect, Protocol::kSimple})
        ->StepAt({RankIndex{0}, 0, 0, 0}, 0)
        .bytes;
  };
  EXPECT_EQ(chunk_bytes(8192 * kMiB), 512u << 10);
  EXPECT_EQ(chunk_bytes(8191 * kMiB), 256u << 10);
  EXPECT_EQ(chunk_bytes(4095 * kMiB), 128u << 10);
  EXPECT_EQ(chunk_bytes(256 * kMiB), 128u << 10);
  EXPECT_EQ(chunk_bytes(255 * kMiB), 64u << 10);
  EXPECT_EQ(chunk_bytes(127 * kMiB), 32u << 10);
}

}  // namespace
}  // namespace railyard
