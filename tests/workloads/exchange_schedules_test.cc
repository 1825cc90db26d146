// SPDX-License-Identifier: GPL-2.0-only
// PAT, direct exchange and halving-doubling: messages and volumes by their closed forms.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/collectives/exchange_order.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;

constexpr uint64_t kKiB = 1024;

JobCollective Bytes(CollectiveKind kind, uint64_t count) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = count;
  collective.datatype = Datatype::kInt8;
  return collective;
}

NcclSettings OneChannel() {
  NcclSettings settings;
  settings.max_nchannels = 1;
  return settings;
}

// The sends of one rank on channel 0: receiver and bytes.
using Sends = std::vector<std::pair<int32_t, uint64_t>>;
Sends SendsOf(const CollectiveSchedule& schedule, uint32_t rank) {
  Sends sends;
  const LaneId lane{RankIndex{rank}, 0, 0, 0};
  for (uint64_t i = 0; i < schedule.StepCount(lane); ++i) {
    const Step step = schedule.StepAt(lane, i);
    if (step.send_to != kNoPeer) sends.emplace_back(step.send_to, step.bytes);
  }
  return sends;
}

uint64_t SumOf(const Sends& sends) {
  uint64_t sum = 0;
  for (const auto& [to, bytes] : sends) sum += bytes;
  return sum;
}

std::shared_ptr<const CollectiveSchedule> Pat(uint32_t ranks, CollectiveKind kind, uint64_t bytes) {
  return NcclPlanner(Nodes(ranks, 1), OneChannel())
      .Plan(Bytes(kind, bytes), {Algorithm::kPat, Protocol::kSimple});
}

// With chunks as large as a slot, 16 ranks send 8, 4, 2 and 1 messages to distance 1, 2, 4 and 8;
// blocks of two chunks as many again.
TEST(PatScheduleTest, SendsAMessageForEachFullBlock) {
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const auto schedule = Pat(16, kind, 1024 * kKiB);
    std::map<int32_t, uint32_t> messages;
    for (const auto& [to, bytes] : SendsOf(*schedule, 8)) {
      EXPECT_EQ(bytes, 512 * kKiB);
      ++messages[kind == CollectiveKind::kAllGather ? 8 - to : (to + 16 - 8) % 16];
    }
    EXPECT_EQ(messages, (std::map<int32_t, uint32_t>{{1, 16}, {2, 8}, {4, 4}, {8, 2}}))
        << CollectiveKindName(kind);
  }
}

// Small blocks: log2 n messages, one for each distance, the far ones of one block first; of
// ReduceScatter last.
TEST(PatScheduleTest, AggregatesSmallBlocksToOneMessagePerDistance) {
  EXPECT_EQ(SendsOf(*Pat(16, CollectiveKind::kAllGather, kKiB), 15),
            (Sends{{7, kKiB}, {11, 2 * kKiB}, {13, 4 * kKiB}, {14, 8 * kKiB}}));
  EXPECT_EQ(SendsOf(*Pat(16, CollectiveKind::kReduceScatter, kKiB), 0),
            (Sends{{1, 8 * kKiB}, {2, 4 * kKiB}, {4, 2 * kKiB}, {8, kKiB}}));
}

// n - 1 blocks, as a ring.
TEST(PatScheduleTest, SendsNMinusOneBlocks) {
  for (uint32_t ranks = 2; ranks <= 64; ++ranks) {
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      for (const uint64_t bytes : {uint64_t{77}, 100 * kKiB, 700 * kKiB}) {
        const auto schedule = Pat(ranks, kind, bytes);
        for (RankIndex rank{0}; rank < ranks; ++rank) {
          ASSERT_EQ(SumOf(SendsOf(*schedule, rank)), (ranks - 1) * bytes)
              << CollectiveKindName(kind) << " of " << bytes << " B on " << ranks << " ranks";
        }
      }
    }
  }
}

TEST(PatScheduleTest, KeepsNoMoreThanEightMessagesUnderWay) {
  const auto schedule = Pat(64, CollectiveKind::kAllGather, 512 * kKiB);
  const LaneId lane{RankIndex{5}, 0, 0, 0};
  int under_way = 0;
  int most = 0;
  for (uint64_t i = 0; i < schedule->StepCount(lane); ++i) {
    const Step step = schedule->StepAt(lane, i);
    if (step.send_to != kNoPeer) ++under_way;
    if (step.recv_from != kNoPeer) --under_way;
    most = std::max(most, under_way);
  }
  EXPECT_EQ(most, 8);
}

TEST(PatScheduleTest, IsChosenAsNcclChoosesIt) {
  NcclSettings settings;
  settings.version = 23007;
  const auto choice = [&](const CommunicatorLayout& layout, uint64_t kib, ReplayChoice stated) {
    JobCollective collective = Bytes(CollectiveKind::kAllGather, kib * kKiB / 4);
    collective.bytes = kib * kKiB;
    const auto chosen = NcclPlanner(layout, settings).Choose(collective, stated);
    return chosen ? ReplayName(*chosen) : "none";
  };
  const ReplayChoice pat = {Algorithm::kPat, Protocol::kUnstated};
  // NCCL 2.30's own outcome for four servers with one GPU each.
  EXPECT_EQ(choice(Nodes(4, 1), 512, {}), "RING/LL");
  EXPECT_EQ(choice(Nodes(4, 1), 1024, {}), "PAT/SIMPLE");
  EXPECT_EQ(choice(Nodes(4, 1), 2048, {}), "RING/LL128");
  // With more of them it is a demand.
  EXPECT_EQ(choice(Nodes(2, 8), 1024, {}), "RING/LL128");
  EXPECT_EQ(choice(Nodes(2, 8), 1024, pat), "PAT/SIMPLE");
  settings.version = 22205;
  EXPECT_EQ(choice(Nodes(4, 1), 1024, {}), "RING/LL128");
  EXPECT_EQ(choice(Nodes(4, 1), 1024, pat), "none");
}

TEST(DirectScheduleTest, SendsToEveryOtherRankWhatARingSendsToOne) {
  const NcclPlanner planner(Filled(8), OneChannel());
  const auto plan = [&](CollectiveKind kind, uint64_t bytes) {
    return planner.Plan(Bytes(kind, bytes), {Algorithm::kDirect, Protocol::kSimple});
  };
  const auto all_reduce = plan(CollectiveKind::kAllReduce, uint64_t{8} * 4096);
  const auto all_gather = plan(CollectiveKind::kAllGather, 4096);
  const auto reduce_scatter = plan(CollectiveKind::kReduceScatter, 4096);
  for (RankIndex rank{0}; rank < 8; ++rank) {
    EXPECT_EQ(SendsOf(*all_reduce, rank).size(), 14u);
    EXPECT_EQ(SumOf(SendsOf(*all_reduce, rank)), 2 * 7 * 4096u);
    std::set<int32_t> receivers;
    for (const auto& [to, bytes] : SendsOf(*all_gather, rank)) {
      EXPECT_EQ(bytes, 4096u);
      receivers.insert(to);
    }
    EXPECT_EQ(receivers.size(), 7u);
    EXPECT_EQ(SendsOf(*all_gather, rank).size(), 7u);
    EXPECT_EQ(SumOf(SendsOf(*reduce_scatter, rank)), 7 * 4096u);
  }
}

// Halves, quarters, ..., and back; who is folded sends and receives all of it besides.
TEST(HalvingDoublingScheduleTest, SendsHalvesThenDoubles) {
  const auto plan = [](uint32_t ranks) {
    return NcclPlanner(Filled(ranks), OneChannel())
        .Plan(Bytes(CollectiveKind::kAllReduce, 64 * kKiB),
              {Algorithm::kHalvingDoubling, Protocol::kSimple});
  };
  EXPECT_EQ(SendsOf(*plan(8), 5), (Sends{{4, 32 * kKiB},
                                         {7, 16 * kKiB},
                                         {1, 8 * kKiB},
                                         {1, 8 * kKiB},
                                         {7, 16 * kKiB},
                                         {4, 32 * kKiB}}));
  // Five ranks: 0 is folded into 1; 1, 2, 3, 4 are the four places.
  EXPECT_EQ(SendsOf(*plan(5), 0), (Sends{{1, 64 * kKiB}}));
  EXPECT_EQ(
      SendsOf(*plan(5), 1),
      (Sends{{2, 32 * kKiB}, {3, 16 * kKiB}, {3, 16 * kKiB}, {2, 32 * kKiB}, {0, 64 * kKiB}}));
  EXPECT_EQ(SumOf(SendsOf(*plan(5), 4)), uint64_t{2} * 3 * 16 * kKiB);
}

TEST(ExchangeOrderTest, RunsAheadThenTakesTurns) {
  const auto text = [](const ExchangeOrder& order) {
    std::string all;
    for (uint64_t i = 0; i < order.count(); ++i) {
      const auto place = order.At(i);
      all += (place.is_send ? "s" : "r") + std::to_string(place.number) + " ";
    }
    return all;
  };
  EXPECT_EQ(text({.sends = 4, .receives = 4, .ahead = 2}), "s0 s1 r0 s2 r1 s3 r2 r3 ");
  EXPECT_EQ(text({.sends = 1, .receives = 3, .ahead = 2}), "s0 r0 r1 r2 ");
  EXPECT_EQ(text({.sends = 4, .receives = 1, .ahead = 2}), "s0 s1 r0 s2 s3 ");
  EXPECT_EQ(text({.sends = 2, .receives = 0, .ahead = 1}), "s0 s1 ");
}

}  // namespace
}  // namespace railyard
