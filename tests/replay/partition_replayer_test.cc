// SPDX-License-Identifier: GPL-2.0-only
// Episodes of partitions, on a machine that only tests have. GPUs 0 to 3 of a server make the same
// collective four times: it is simulated first, then ahead of its time, and known from then on.
#include "simulator/replay/partitions/partition_replayer.h"

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/fabric/fabric_network.h"
#include "tests/replay/fake_partitions.h"
#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::SizeIs;

constexpr int64_t kCallPs = FakeHost::kLaunchPs + kPsPerMs;
constexpr int64_t kGapPs = 20 * kPsPerUs;
constexpr EventClass kTestEvent{50};

// Replays episodes of partitions, and nothing else.
struct PartReplay final : NoReplay {
  bool OnBegin(RunningIndex operation) override {
    if (before_begin) before_begin(streams->running()[operation].call);
    return partitions->OnBegin(operation);
  }
  bool OnLaunch(RunningIndex operation) override { return partitions->OnLaunch(operation); }
  void OnEnd(RunningIndex operation) override { partitions->OnEnd(operation); }
  PartitionReplayer* partitions = nullptr;
  const StreamRunner* streams = nullptr;
  std::function<void(const Call&)> before_begin;
};

Job FourTimes() {
  const std::vector<TraceOperation> calls(4, AllReduce(8, kGapPs));
  return JobOf({{0, 1, 2, 3}}, {calls, calls, calls, calls});
}

struct Partitions {
  explicit Partitions(Job job = FourTimes(), ReplayCacheMode mode = ReplayCacheMode::kOn,
                      uint32_t servers = 1)
      : test(servers, std::move(job), replay) {
    test.ledger.KeepBegun();
    numbers.Number(test.plans, map.ClassesOfCommunicators());
    partitions.emplace(PartitionReplayer::Simulation{.engine = FabricSimulatorImpl::Get(),
                                                     .calls = test.calls,
                                                     .streams = test.streams,
                                                     .ledger = test.ledger,
                                                     .plans = test.plans,
                                                     .numbers = numbers,
                                                     .progress = test.progress,
                                                     .map = map,
                                                     .neighbours = neighbours,
                                                     .host = host},
                       cache, mode, false);
    replay.partitions = &*partitions;
    replay.streams = &test.streams;
    test.host.on_launch = [this](const Call&) {
      ++host.count;
      ++host.shared_count;
      ahead += test.streams.is_ahead() ? 1 : 0;
    };
  }

  PartReplay replay;
  SmallReplay test;
  FakePartitions host;
  PartitionMap map{test.graph, test.calls, test.plans, host, {}};
  PartitionNeighbours neighbours{test.graph,   test.calls,  test.plans, map,
                                 test.streams, test.ledger, host};
  PlanNumbers numbers{test.calls};
  EpisodeCache cache;
  std::optional<PartitionReplayer> partitions;
  uint32_t ahead = 0;  // calls launched ahead of their time
};

// --- Hits ----------------------------------------------------------------------------------------

TEST(PartitionReplayerTest, ACollectiveIsSimulatedInPlaceOnceAndAheadOnce) {
  Partitions test;
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(4 + 4));
  EXPECT_EQ(test.ahead, 4u);
  EXPECT_EQ(test.cache.episode_count(), 1u);
  EXPECT_FALSE(test.partitions->is_any_replayed());
}

TEST(PartitionReplayerTest, TimesAndCountsAreAsIfAllHadBeenSimulated) {
  Partitions test;
  test.test.Run();
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(test.test.BeginPs(i), kGapPs + i * (kCallPs + kGapPs));
    EXPECT_EQ(test.test.EndPs(i), (i + 1) * (kCallPs + kGapPs));
    EXPECT_EQ(test.test.ledger.times()[i].replayed_by,
              i < 2 ? ReplayRule::kNone : ReplayRule::kPartition)
        << i;
  }
  EXPECT_EQ(test.host.count, 16u);
  EXPECT_EQ(test.host.shared_count, 16u);
}

TEST(PartitionReplayerTest, TheStateIsThenTheOneInWhichTheEpisodeEnded) {
  Partitions test;
  test.test.host.on_launch = [&](const Call& call) {
    if (call.rank == 3) test.host.value = 9;
  };
  test.replay.before_begin = [&](const Call& call) {
    if (call.rank != 0) return;
    EXPECT_EQ(test.host.value, call.index == 0 ? 5u : 9u);
  };
  test.test.Run();
  EXPECT_EQ(test.host.value, 9u);
}

// Returns how often the host's state is visited from the fourth collective's begin on.
uint32_t VisitsOfTheFourth(Partitions& test) {
  uint32_t before = 0;
  const auto change = test.replay.before_begin;
  test.replay.before_begin = [&, change](const Call& call) {
    if (change) change(call);
    if (call == Call{GlobalRank{0}, 3}) before = test.host.visits;
  };
  test.test.Run();
  return test.host.visits - before;
}

TEST(PartitionReplayerTest, TheStateThatAReplayHasLeftIsKnownWithoutAVisit) {
#ifdef NDEBUG
  constexpr uint32_t kVisitsOfAssertions = 0;
#else
  constexpr uint32_t kVisitsOfAssertions = 1;
#endif
  Partitions test;
  // In one visit it becomes that of the end.
  EXPECT_EQ(VisitsOfTheFourth(test), 1 + kVisitsOfAssertions);
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

TEST(PartitionReplayerTest, AStateThatOthersHaveChangedIsVisited) {
  Partitions test;
  test.replay.before_begin = [&](const Call& call) {
    if (call == Call{GlobalRank{0}, 3}) test.partitions->ForgetStates();
  };
  EXPECT_EQ(VisitsOfTheFourth(test), 2u);
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

TEST(PartitionReplayerTest, TheStateAfterASimulatedCollectiveIsVisited) {
  Partitions test;
  test.replay.before_begin = [&](const Call& call) {
    if (call.rank == 0) test.host.may_move = call.index == 2;
  };
  EXPECT_EQ(VisitsOfTheFourth(test), 2u);
  EXPECT_EQ(test.test.ledger.times()[2].replayed_by, ReplayRule::kNone);
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

TEST(PartitionReplayerTest, TheStateOfAPartitionThatAFaultMayChangeIsVisited) {
  Partitions test;
  test.map.partition(PartitionIndex{0}).is_faulty = true;
  EXPECT_EQ(VisitsOfTheFourth(test), 2u);
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

// --- Refused hits --------------------------------------------------------------------------------

struct Difference {
  std::string name;
  std::function<void(Partitions&)> make;  // as the fourth collective begins
  uint32_t launched = 12;                 // calls in all: the fourth is simulated, ahead or not
};

void PrintTo(const Difference& difference, std::ostream* out) { *out << difference.name; }

class RefusedPartitionHitTest : public ::testing::TestWithParam<Difference> {};

TEST_P(RefusedPartitionHitTest, IsSimulated) {
  Partitions test;
  test.replay.before_begin = [&](const Call& call) {
    if (call != Call{GlobalRank{0}, 3}) return;
    GetParam().make(test);
    test.partitions->ForgetStates();  // no call has made the difference
  };
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(GetParam().launched));
  EXPECT_EQ(test.test.ledger.times()[2].replayed_by, ReplayRule::kPartition);
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kNone);
}

void Schedule(PendingMeans means, int64_t in_ps) {
  FabricSimulatorImpl& engine = FabricSimulatorImpl::Get();
  engine.Register(
      kTestEvent, {.name = "tests", .pending = means}, [](void*, uint32_t) {}, nullptr);
  engine.ScheduleFabric(engine.NowPs() + in_ps, kTestEvent, 0, 0);
}

const Difference kDifferences[] = {
    {"AValueOfTheStateDiffers", [](Partitions& t) { t.host.value = 6; }},
    {"AnInstantOfTheStateDiffers",
     [](Partitions& t) { t.host.instant_ps = FabricSimulatorImpl::Get().NowPs() + kPsPerMs / 2; }},
    {"TheIdentityDiffers", [](Partitions& t) { t.host.identity = 4; }},
    {"TheShapeDiffers", [](Partitions& t) { t.map.partition(PartitionIndex{0}).shape = 77; }},
    {"TheStateIsNotAtRest", [](Partitions& t) { t.host.is_quiescent = false; }},
    {"AGpuStandsStill", [](Partitions& t) { t.host.stopped_gpu = GpuIndex{2}; }},
    {"ConnectionsMayMove", [](Partitions& t) { t.host.may_move = true; }},
    {"OthersNeedItsBuffer", [](Partitions& t) { t.host.may_be_independent = false; }},
    {"ADetourCrossesIt",
     [](Partitions& t) {
       const std::vector gpus = {GpuIndex{1}};
       t.partitions->OnDetour(gpus);
     }},
    {"ACollectiveIsWatched", [](Partitions& t) { t.test.progress.Watch(CollectiveIndex{3}); }},
    {"TheJobMayEndBeforeItsEnd",
     [](Partitions&) { Schedule(PendingMeans::kAnything, kPsPerMs / 2); }},
    {"AnObserverIsDueBeforeItsEnd",
     [](Partitions&) { Schedule(PendingMeans::kObserver, kPsPerMs / 2); }},
    {"AFaultOfItsOwnIsDueBeforeItsEnd", [](Partitions& t) {
       t.map.partition(PartitionIndex{0}).is_faulty = true;
       Schedule(PendingMeans::kChange, kPsPerMs / 2);
     }}};
INSTANTIATE_TEST_SUITE_P(Where, RefusedPartitionHitTest, ::testing::ValuesIn(kDifferences),
                         [](const auto& of) { return of.param.name; });

TEST(PartitionReplayerTest, AFaultElsewhereRefusesNothing) {
  Partitions test;
  test.replay.before_begin = [&](const Call& call) {
    if (call == Call{GlobalRank{0}, 3}) Schedule(PendingMeans::kChange, kPsPerMs / 2);
  };
  test.test.Run();
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

// The third collective differs in one thing from the first two.
struct OtherCall {
  std::string name;
  std::function<void(std::vector<TraceOperation>& program, uint32_t rank)> make;
};
void PrintTo(const OtherCall& call, std::ostream* out) { *out << call.name; }
class OtherCallTest : public ::testing::TestWithParam<OtherCall> {};

TEST_P(OtherCallTest, IsNoHit) {
  Programs programs(4, std::vector<TraceOperation>(3, AllReduce(8, kGapPs)));
  for (uint32_t rank = 0; rank < 4; ++rank) GetParam().make(programs[rank], rank);
  Partitions test(JobOf({{0, 1, 2, 3}}, programs));
  test.test.Run();
  EXPECT_TRUE(test.test.ledger.calls_left() == 0);
  EXPECT_THAT(test.test.host.launched, SizeIs(12));
  EXPECT_EQ(test.test.ledger.times()[2].replayed_by, ReplayRule::kNone);
}

const OtherCall kOtherCalls[] = {
    {"ThePlanDiffers", [](auto& program, uint32_t) { program[2].count = 16; }},
    {"ARelativeBeginDiffers",
     [](auto& program, uint32_t rank) {
       if (rank == 2) program[2].compute_before_ps += 1;
     }},
    {"ItIsNotKnownWhenAllBegin", [](auto& program, uint32_t rank) {
       // The last rank computes first, in an operation of its own.
       if (rank != 3) return;
       program[2].compute_before_ps = 0;
       TraceOperation compute = {.kind = CollectiveKind::kCompute, .compute_before_ps = kGapPs};
       program[1].compute_before_ps = kGapPs;
       program.insert(program.begin() + 2, compute);
       program[3].compute_before_ps = 2;
     }}};
INSTANTIATE_TEST_SUITE_P(Where, OtherCallTest, ::testing::ValuesIn(kOtherCalls),
                         [](const auto& of) { return of.param.name; });

// Rail 0 of two servers makes a collective four times; in the middle of the fourth another begins.
TEST(PartitionReplayerTest, AHitIsRefusedWhereAnotherCollectiveMayUseItsNics) {
  const auto is_fourth_replayed = [](const std::vector<uint32_t>& others) {
    Programs programs(16);
    for (const uint32_t rank : {0u, 8u}) programs[rank].assign(4, AllReduce(8, kGapPs));
    const int64_t middle_ps = 3 * (kCallPs + kGapPs) + kGapPs + kCallPs / 2;
    for (const uint32_t rank : others) programs[rank].push_back(AllReduce(8, middle_ps, 1, 1));
    Partitions test(JobOf({{0, 8}, others}, programs), ReplayCacheMode::kOn, 2);
    test.test.Run();
    EXPECT_EQ(test.test.ledger.times()[2].replayed_by, ReplayRule::kPartition);
    EXPECT_EQ(test.test.ledger.calls_left(), 0u);
    return test.test.ledger.times()[3].replayed_by != ReplayRule::kNone;
  };
  EXPECT_FALSE(is_fourth_replayed({0, 8}));
  EXPECT_TRUE(is_fourth_replayed({1, 9})) << "another rail's";
}

// Ranks 8 and 16 make a collective four times. Rank 0 has begun another one with rank 8, which
// comes to it last.
TEST(PartitionReplayerTest, ACallThatWaitsForAPartitionDoesNotUseIt) {
  struct Case {
    std::vector<GpuIndex> waited_for;
    CollectiveKind kind = CollectiveKind::kAllReduce;
  };
  const auto is_fourth_replayed = [](const Case& of) {
    Programs programs(24);
    for (const uint32_t rank : {8u, 16u}) programs[rank].assign(4, AllReduce(8, kGapPs));
    TraceOperation other = AllReduce(8, 0, 1);
    other.kind = of.kind;
    for (const uint32_t rank : {0u, 8u}) programs[rank].push_back(other);
    Partitions test(JobOf({{8, 16}, {0, 8}}, programs), ReplayCacheMode::kOn, 3);
    test.host.waited_for = of.waited_for;
    test.test.host.on_launch = [&](const Call& call) {
      test.test.host.channels_ps = {call.rank == 0 ? 20 * kPsPerMs : kPsPerMs};
    };
    test.test.Run();
    EXPECT_EQ(test.test.ledger.calls_left(), 0u);
    return test.test.ledger.times()[3].replayed_by != ReplayRule::kNone;
  };
  EXPECT_TRUE(is_fourth_replayed({.waited_for = {GpuIndex{8}}}));
  EXPECT_FALSE(is_fourth_replayed({.waited_for = {}})) << "it may send";
  EXPECT_FALSE(
      is_fourth_replayed({.waited_for = {GpuIndex{8}}, .kind = CollectiveKind::kBroadcast}))
      << "its root may end before, and begin something else";
}

// Once connections are open, a collective of another size needs not be simulated in place, unless
// switches of NVLinks may lack what it needs.
TEST(PartitionReplayerTest, WhatOthersHaveOpenedNeedsNoCallInPlaceOnNics) {
  const auto launched_in_place = [](const std::vector<uint32_t>& ranks, bool are_open) {
    Programs programs(16);
    for (const uint32_t rank : ranks) {
      programs[rank] = {AllReduce(8, kGapPs), AllReduce(16, kGapPs)};
    }
    Partitions test(JobOf({ranks}, programs), ReplayCacheMode::kOn, 2);
    test.host.are_open = are_open;
    test.test.Run();
    return test.test.host.launched.size() - test.ahead;
  };
  EXPECT_EQ(launched_in_place({0, 8}, false), 4u);
  EXPECT_EQ(launched_in_place({0, 8}, true), 0u);
  EXPECT_EQ(launched_in_place({0, 1}, true), 4u);
}

TEST(PartitionReplayerTest, WhatCannotBeSimulatedAheadIsSimulatedInPlace) {
  Partitions test;
  test.host.may_be_ahead = false;
  test.test.Run();
  EXPECT_EQ(test.ahead, 0u);
  EXPECT_THAT(test.test.host.launched, SizeIs(16));
}

// --- Rows of collectives without a pause ---------------------------------------------------------

// Four servers make the same collective on rail 0 four times, one after the other. The GPUs' first
// calls end this much apart, and so do the later ones, which all take as long.
struct Row : Partitions {
  explicit Row(const std::vector<int64_t>& apart_us, Programs programs = RowPrograms())
      : Partitions(JobOf({{0, 8, 16, 24}, {0, 8}}, programs), ReplayCacheMode::kOn, 4) {
    host.are_open = true;
    test.host.on_launch = [this, apart_us](const Call& call) {
      const int64_t late_ps = call.index == 0 ? apart_us[call.rank / 8] * kPsPerUs : 0;
      test.host.channels_ps = {kPsPerMs + late_ps};
      ++host.count;
      ++host.shared_count;
      ahead += test.streams.is_ahead() ? 1 : 0;
      if (on_launch) on_launch(call);
    };
  }
  static Programs RowPrograms() {
    Programs programs(32);
    for (const uint32_t rank : {0u, 8u, 16u, 24u}) programs[rank].assign(4, AllReduce(8));
    return programs;
  }
  ReplayRule RuleOf(uint32_t collective) const {
    return test.ledger.times()[collective].replayed_by;
  }
  // Checks the times of a row of which everything was simulated.
  void ExpectTimes(int64_t last_apart_us) const {
    for (uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(test.BeginPs(i), i * kCallPs) << i;
      EXPECT_EQ(test.EndPs(i), (i + 1) * kCallPs + last_apart_us * kPsPerUs) << i;
    }
    EXPECT_EQ(host.count, 16u);
    EXPECT_EQ(host.shared_count, 16u);
  }
  std::function<void(const Call&)> on_launch;
};

// A launch takes 5 us: the first GPU begins the next collective 3 us before the third has ended,
// and 1 us after the two beside it have.
TEST(PartitionReplayerTest, ARowIsReplayedThoughItIsNeverAtRest) {
  Row row({0, 4, 8, 4});
  row.test.Run();
  row.ExpectTimes(8);
  EXPECT_EQ(row.RuleOf(1), ReplayRule::kNone);  // ahead, for the begins are other ones
  EXPECT_EQ(row.RuleOf(2), ReplayRule::kPartition);
  EXPECT_EQ(row.RuleOf(3), ReplayRule::kPartition);
  EXPECT_THAT(row.test.host.launched, SizeIs(row.ahead)) << "nothing is simulated in place";
  EXPECT_EQ(row.ahead, 8u);
}

TEST(PartitionReplayerTest, ARowIsSimulatedWhereAGpuBeginsBeforeThoseBesideItAreAtRest) {
  Row row({0, 6, 8, 4});
  row.test.Run();
  row.ExpectTimes(8);
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(row.RuleOf(i), ReplayRule::kNone) << i;
  EXPECT_THAT(row.test.host.launched, SizeIs(16 + row.ahead));
}

TEST(PartitionReplayerTest, ARowIsSimulatedWhereAGpuIsNotAtRestWhenItsCallEnds) {
  Row row({0, 4, 8, 4});
  row.host.busy = {false, false, false, true};
  row.test.Run();
  row.ExpectTimes(8);
  EXPECT_EQ(row.RuleOf(2), ReplayRule::kNone);
}

TEST(PartitionReplayerTest, ARowIsSimulatedWhereInstantsLieAheadOfIts) {
  Row row({0, 4, 8, 4});
  row.on_launch = [&](const Call&) {
    row.host.instant_ps = FabricSimulatorImpl::Get().NowPs() + 2 * kPsPerMs;
  };
  row.test.Run();
  row.ExpectTimes(8);
  EXPECT_EQ(row.RuleOf(2), ReplayRule::kNone);
}

// The first two ranks go on with a collective of their own on the same NICs.
TEST(PartitionReplayerTest, ARowIsSimulatedWhereOthersBeginBeforeItIsAtRest) {
  Programs programs = Row::RowPrograms();
  for (const uint32_t rank : {0u, 8u}) programs[rank].resize(3, AllReduce(8));
  for (const uint32_t rank : {16u, 24u}) programs[rank].resize(3, AllReduce(8));
  for (const uint32_t rank : {0u, 8u}) programs[rank].push_back(AllReduce(8, 0, 1));
  Row row({0, 4, 8, 4}, programs);
  row.test.Run();
  EXPECT_EQ(row.RuleOf(1), ReplayRule::kNone);
  EXPECT_EQ(row.RuleOf(2), ReplayRule::kNone) << "the last one of all four";
  EXPECT_EQ(row.test.EndPs(2), 3 * kCallPs + 8 * kPsPerUs);
  EXPECT_EQ(row.test.ledger.calls_left(), 0u);
}

// The last collective is simulated, and finds the state that the third one leaves, although that
// ends on other GPUs only later.
TEST(PartitionReplayerTest, WhatFollowsARowFindsTheStateThatItLeaves) {
  Row row({0, 4, 8, 4});
  row.on_launch = [&](const Call& call) {
    if (call.rank == 24) row.host.value = 9;
    if (call != Call{GlobalRank{0}, 3}) return;
    EXPECT_FALSE(row.test.streams.is_ahead());
    EXPECT_EQ(row.host.value, 9u);
  };
  row.replay.before_begin = [&](const Call& call) {
    if (call != Call{GlobalRank{0}, 3}) return;
    row.host.may_move = true;
    row.host.value = 7;  // as long as the third is replayed, it does not matter
  };
  row.test.Run();
  row.ExpectTimes(8);
  EXPECT_EQ(row.RuleOf(2), ReplayRule::kPartition);
  EXPECT_EQ(row.RuleOf(3), ReplayRule::kNone);
  EXPECT_EQ(row.host.value, 9u);
}

// --- Forbidden actions while a partition is replayed ---------------------------------------------

TEST(PartitionReplayerTest, ADetourElsewhereRefusesNothing) {
  Partitions test;
  const std::vector elsewhere = {GpuIndex{5}};
  test.replay.before_begin = [&](const Call& call) {
    if (call == Call{GlobalRank{0}, 3}) test.partitions->OnDetour(elsewhere);
  };
  test.test.Run();
  EXPECT_EQ(test.test.ledger.times()[3].replayed_by, ReplayRule::kPartition);
}

TEST(PartitionReplayerTest, APartIsNotHaltedWhileItsPartitionIsReplayed) {
  Partitions test;
  bool has_thrown = false;
  // In the middle of the second collective, which is replayed.
  const auto look = [&] {
    ASSERT_TRUE(test.partitions->is_any_replayed());
    EXPECT_THROW(test.partitions->Halt(PartIndex{0}), SharedBuffers::NotIndependent);
    const std::vector crossed = {GpuIndex{1}};
    EXPECT_THROW(test.partitions->OnDetour(crossed), SharedBuffers::NotIndependent);
    has_thrown = true;
  };
  static std::function<void()> at_event;
  at_event = look;
  FabricSimulatorImpl& engine = FabricSimulatorImpl::Get();
  engine.Register(
      kTestEvent, {.name = "tests", .pending = PendingMeans::kNothing},
      [](void*, uint32_t) { at_event(); }, nullptr);
  engine.ScheduleFabric(kCallPs + 2 * kGapPs + kPsPerMs / 2, kTestEvent, 0, 0);
  test.test.Run();
  EXPECT_TRUE(has_thrown);
}

// --- Verification --------------------------------------------------------------------------------

TEST(PartitionReplayerTest, VerificationSimulatesEveryCollectiveInPlace) {
  Partitions test(FourTimes(), ReplayCacheMode::kVerify);
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(16 + 4)) << "and one of them ahead";
}

// Verification visits the state that an episode has left, although it is known.
TEST(PartitionReplayerDeathTest, VerificationStopsWhereAPartitionIsNotAsItsLastEpisodeLeftIt) {
  const auto run = [] {
    Partitions test(FourTimes(), ReplayCacheMode::kVerify);
    test.replay.before_begin = [&](const Call& call) {
      if (call == Call{GlobalRank{0}, 3}) ++test.host.value;
    };
    test.test.Run();
  };
  EXPECT_DEATH(run(), "another state than the one that its last episode left");
}

TEST(PartitionReplayerDeathTest, VerificationStopsAtAnEpisodeThatIsWrong) {
  const auto run = [](const std::function<void(Partitions&)>& spoil) {
    Partitions test(FourTimes(), ReplayCacheMode::kVerify);
    test.test.host.on_launch = [&](const Call& call) {
      ++test.host.count;
      if (call == Call{GlobalRank{0}, 2}) spoil(test);
    };
    test.test.Run();
  };
  const std::string why = "is not what would have been replayed";
  EXPECT_DEATH(run([](Partitions& test) { ++test.host.count; }), why);
  EXPECT_DEATH(run([](Partitions& test) { ++test.host.value; }), why);
  EXPECT_DEATH(run([](Partitions& test) { test.test.host.channels_ps = {2 * kPsPerMs}; }), why);
}

}  // namespace
}  // namespace railyard::testing
