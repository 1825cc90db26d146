// SPDX-License-Identifier: GPL-2.0-only
// The times that are recorded of calls, and the progress of collectives that are watched.
#include "simulator/replay/streams/call_ledger.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/replay/streams/progress_watch.h"
#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kFloats = 1 << 20;

// Two ranks make two AllReduces.
struct Ledger {
  explicit Ledger(bool keep_paths = false) : ledger(calls, plans, progress, keep_paths) {}

  // The collective's calls of both ranks.
  void Note(uint32_t index, int64_t begin_ps, int64_t end_ps) {
    for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}})
      ledger.NoteBegin({rank, index}, begin_ps + rank);
    for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
      ledger.NoteEnd({rank, index}, begin_ps + rank, end_ps + rank, {});
    }
  }

  FabricGraph graph = Servers(1);
  Job job = JobOf({{0, 1}}, Programs(2, {AllReduce(kFloats), AllReduce(kFloats)}));
  TestMoves moves;
  CallTable calls{job};
  PlanCache plans{graph, job, NcclSettings{}, GpuCosts{}, NicSettings{}, moves};
  std::vector<std::pair<uint32_t, double>> seen;
  std::vector<uint32_t> counted;
  ProgressWatch progress{
      job,
      plans,
      {.count_payload = [this](uint32_t id) { counted.push_back(id); },
       .on_progress = [this](CollectiveIndex id, double share) { seen.emplace_back(id, share); }}};
  CallLedger ledger;
};

TEST(CallLedgerTest, ACollectiveBeginsAndEndsWithItsRanks) {
  Ledger test;
  test.Note(0, 100, kPsPerMs);
  const CollectiveTimes& times = test.ledger.times()[0];
  EXPECT_EQ(times.first_start_ps, 100);
  EXPECT_EQ(times.last_start_ps, 101);
  EXPECT_EQ(times.last_end_ps, kPsPerMs + 1);
  EXPECT_EQ(times.bound_ps, test.plans.BoundOf(CollectiveIndex{0}));
  EXPECT_TRUE(test.ledger.HasEnded(CollectiveIndex{0}));
  EXPECT_FALSE(test.ledger.HasEnded(CollectiveIndex{1}));
  EXPECT_EQ(test.ledger.calls_left(), 2u);
  EXPECT_EQ(test.ledger.collectives_ended(), 1u);
  EXPECT_EQ(test.ledger.parts()[0].end_ps, kPsPerMs + 1);
}

TEST(CallLedgerDeathTest, NoCollectiveIsFasterThanItsBound) {
  Ledger test;
  const int64_t bound_ps = test.plans.BoundOf(CollectiveIndex{0});
  test.Note(0, 0, bound_ps - 1);  // rank 1 ends at the bound
  EXPECT_DEATH(test.Note(1, kPsPerMs, kPsPerMs + bound_ps - 2), "less than its bound");
}

TEST(CallLedgerTest, TheHashDependsOnTimesAndNotOnOrder) {
  Ledger one;
  one.Note(0, 0, kPsPerMs);
  Ledger other;
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{0}})
    other.ledger.NoteBegin({rank, 0}, rank);
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{0}})
    other.ledger.NoteEnd({rank, 0}, rank, kPsPerMs + rank, {});
  EXPECT_EQ(one.ledger.ended_hash(), other.ledger.ended_hash());
  Ledger later;
  later.Note(0, 0, kPsPerMs + 1);
  EXPECT_NE(one.ledger.ended_hash(), later.ledger.ended_hash());
}

TEST(CallLedgerTest, KeepsTheCallsOfOneRankAndWhichHaveBegun) {
  Ledger test;
  test.ledger.KeepCallsOf(GlobalRank{1});
  test.ledger.KeepBegun();
  test.Note(0, 100, kPsPerMs);
  ASSERT_THAT(test.ledger.calls_kept(), SizeIs(2));
  EXPECT_EQ(test.ledger.calls_kept()[0].begin_ps, 101);
  EXPECT_EQ(test.ledger.calls_kept()[0].end_ps, kPsPerMs + 1);
  EXPECT_EQ(test.ledger.calls_kept()[1].end_ps, kNeverPs);
  EXPECT_TRUE(test.ledger.HasBegun({GlobalRank{1}, 0}));
  EXPECT_FALSE(test.ledger.HasBegun({GlobalRank{1}, 1}));
}

TEST(CallLedgerTest, APartThatBeginsAgainForgetsWhatItMakesAgain) {
  Ledger test;
  test.ledger.KeepBegun();
  test.Note(0, 0, kPsPerMs);
  test.ledger.NoteBegin({GlobalRank{0}, 1}, kPsPerMs);
  test.ledger.Halt(PartIndex{0}, 1);
  EXPECT_TRUE(test.ledger.parts()[0].is_halted);
  EXPECT_FALSE(test.ledger.IsAnyPartUp());
  test.ledger.Restart(PartIndex{0}, {1, 1});
  EXPECT_TRUE(test.ledger.IsAnyPartUp());
  EXPECT_EQ(test.ledger.calls_left(), 2u);
  EXPECT_EQ(test.ledger.times()[1].calls_started, 0u);
  EXPECT_EQ(test.ledger.times()[0].calls_ended, 2u);
  EXPECT_FALSE(test.ledger.HasBegun({GlobalRank{0}, 1}));
  test.Note(1, 5 * kPsPerMs, 6 * kPsPerMs);
  EXPECT_EQ(test.ledger.calls_left(), 0u);
}

TEST(CallLedgerTest, AnAbortedPartHasNothingLeft) {
  Ledger test;
  test.ledger.NoteBegin({GlobalRank{0}, 0}, 0);
  test.ledger.Abort(PartIndex{0}, "a test", kPsPerUs, 1);
  EXPECT_TRUE(test.ledger.IsAborted(PartIndex{0}));
  EXPECT_EQ(test.ledger.calls_left(), 0u);
  EXPECT_EQ(test.ledger.calls_ended(), test.ledger.calls_started());
  EXPECT_EQ(test.ledger.parts()[0].end_ps, kPsPerUs);
}

// Rank 0 waited 3 us for rank 1's slow GPU, of a call of 1 ms: too little to tell; then 30 us.
TEST(CallLedgerTest, RanksWaitForWhatHeldThemUpLong) {
  Ledger test(true);
  const auto end = [&](uint32_t index, int64_t waited_ps) {
    const int64_t begin_ps = int64_t{index} * 2 * kPsPerMs;
    for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}})
      test.ledger.NoteBegin({rank, index}, begin_ps);
    CriticalPath path;
    path.origin_gpu = GpuIndex{1};
    path.origin_ps = begin_ps + 8'400'000;
    path.Spend(PathCause::kSlowPeer, waited_ps);
    path.Blame(GpuIndex{1}, GpuIndex{1}, waited_ps);
    for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
      test.ledger.NoteEnd({rank, index}, begin_ps, begin_ps + kPsPerMs, path);
    }
  };
  end(0, 3 * kPsPerUs);
  EXPECT_THAT(test.ledger.waits(), IsEmpty());
  end(1, 30 * kPsPerUs);
  ASSERT_THAT(test.ledger.waits(), SizeIs(1));
  const auto& [wait, totals] = *test.ledger.waits().begin();
  EXPECT_EQ(wait.rank, 0u);
  EXPECT_EQ(wait.source_rank, 1u);
  EXPECT_EQ(totals.waited_ps, 30 * kPsPerUs);
  // The path's times add up to what the call took.
  EXPECT_EQ(test.ledger.paths()[1].origin_ps, 2 * kPsPerMs);
  EXPECT_EQ(test.ledger.paths()[1].EndPs(), 3 * kPsPerMs);
}

// --- Progress ------------------------------------------------------------------------------------

// In a ring of two each rank takes in the vector: n (n - 1) blocks of 1/n, twice.
TEST(ProgressWatchTest, TellsWhatPartOfThePayloadHasBeenTakenIn) {
  Ledger test;
  test.progress.Watch(CollectiveIndex{0});
  EXPECT_TRUE(test.progress.IsWatched(CollectiveIndex{0}));
  EXPECT_FALSE(test.progress.IsWatched(CollectiveIndex{1}));
  test.ledger.NoteBegin({GlobalRank{0}, 0}, 0);
  test.ledger.NoteBegin({GlobalRank{1}, 0}, 0);
  EXPECT_THAT(test.counted, ElementsAre(0));
  test.progress.OnPayloadTaken(CollectiveIndex{0}, 4 * kFloats / 2);
  test.progress.OnPayloadTaken(CollectiveIndex{0}, 4 * kFloats * 3 / 2);
  EXPECT_THAT(test.seen, ElementsAre(std::pair(0u, 0.0), std::pair(0u, 0.25), std::pair(0u, 1.0)));
}

TEST(ProgressWatchTest, IsUnderWayUntilItsCollectiveHasEnded) {
  Ledger test;
  const auto has_ended = [&](CollectiveIndex id) { return test.ledger.HasEnded(id); };
  EXPECT_FALSE(test.progress.IsAnyUnderWay(has_ended)) << "nothing is watched";
  test.progress.Watch(CollectiveIndex{0});
  EXPECT_TRUE(test.progress.IsAnyUnderWay(has_ended));
  test.Note(0, 0, kPsPerMs);
  EXPECT_FALSE(test.progress.IsAnyUnderWay(has_ended));
}

}  // namespace
}  // namespace railyard::testing
