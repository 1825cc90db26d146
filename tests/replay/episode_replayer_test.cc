// SPDX-License-Identifier: GPL-2.0-only
// Episodes of the whole network, on a machine that only tests have: its state is one value, one
// instant and one counter, and nothing moves on its network.
#include "simulator/replay/episodes/episode_replayer.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/object.h>

#include "simulator/event_order/event_order.h"
#include "simulator/state/field_table.h"
#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kCallPs = FakeHost::kLaunchPs + kPsPerMs;
constexpr int64_t kReplayedPs = 2 * kPsPerMs;  // what calls take in the episode made by hand
constexpr EventClass kTestEvent{50};

// Has a member that no episode changes, and one that is 0 at rest.
struct TestRecord {
  uint32_t fixed = 3;
  uint32_t under_way = 0;

  static constexpr auto Fields() {
    return FieldTable("record", field::Fixed("fixed", &TestRecord::fixed),
                      field::Idle("under_way", &TestRecord::under_way));
  }
};

struct TestState final : StateOwner {
  std::string state_name() const override { return "the test"; }
  void Visit(StateArchive& archive) override {
    archive.Require(is_quiescent);
    archive.Value(value);
    archive.Instant(instant_ps);
    archive.Count(count);
    archive.Unrepeatable(losses);
    VisitFields(records, archive);
  }
  bool is_quiescent = true;
  uint64_t value = 5;
  int64_t instant_ps = 0;
  uint64_t count = 0;
  uint64_t losses = 0;
  std::vector<TestRecord> records{2};
};

// Replays episodes of the whole network, and nothing else.
struct WholeReplay final : NoReplay {
  bool ReplayFromRest() override { return episodes->ReplayFromRest(); }
  bool OnBegin(RunningIndex operation) override {
    episodes->OnBegin(operation);
    return false;
  }
  void OnEnd(RunningIndex operation) override { episodes->OnEnd(operation); }
  void OnNothingRuns() override { episodes->OnNothingRuns(); }
  EpisodeReplayer* episodes = nullptr;
};

struct Episodes {
  explicit Episodes(Job job, ReplayCacheMode mode = ReplayCacheMode::kOn)
      : test(1, std::move(job), replay),
        episodes({.engine = FabricSimulatorImpl::Get(),
                  .state = registry,
                  .network = *network,
                  .calls = test.calls,
                  .streams = test.streams,
                  .ledger = test.ledger,
                  .plans = numbers,
                  .progress = test.progress},
                 cache, mode, false) {
    network->Build(test.graph, FabricSimulatorImpl::Get());
    registry.Add(state);
    numbers.Number(test.plans, std::vector<uint32_t>(test.job.communicators.size(), 0));
    replay.episodes = &episodes;
    test.host.on_launch = [this](const Call&) { ++state.count; };
  }

  // The number of the state as it is now.
  uint32_t StateNow() {
    StateArchive archive(0);
    registry.Visit(archive);
    return cache.NumberOf(archive.TakeState());
  }
  // Both ranks' first calls at once, which end after kReplayedPs in the state as it is now; 7 is
  // counted.
  Episode ByHand() {
    const uint32_t state_now = StateNow();
    return {.begin_state = state_now,
            .end_state = state_now,
            .duration_ps = kReplayedPs,
            .operations = {{.place = EpisodePlace{0},
                            .plan = numbers.Of({GlobalRank{0}, 0}),
                            .end_ps = kReplayedPs},
                           {.place = EpisodePlace{1},
                            .plan = numbers.Of({GlobalRank{1}, 0}),
                            .end_ps = kReplayedPs}},
            .changes = {{0, 7}},
            .can_be_last = true};
  }
  // Something is pending whose meaning for the replay is this.
  void Schedule(PendingMeans means, int64_t at_ps) {
    FabricSimulatorImpl& engine = FabricSimulatorImpl::Get();
    engine.Register(
        kTestEvent, {.name = "tests", .pending = means},
        [](void* self, uint32_t) { static_cast<Episodes*>(self)->on_event(); }, this);
    engine.ScheduleFabric(at_ps, kTestEvent, 0, 0);
  }

  WholeReplay replay;
  SmallReplay test;
  ns3::Ptr<FabricNetwork> network = ns3::CreateObject<FabricNetwork>();
  TestState state;
  StateRegistry registry;
  PlanNumbers numbers{test.calls};
  EpisodeCache cache;
  EpisodeReplayer episodes;
  std::function<void()> on_event = [] {};  // of Schedule()
};

Job Two(const std::vector<TraceOperation>& calls) { return JobOf({{0, 1}}, {calls, calls}); }
Job OneCall() { return Two({AllReduce(8)}); }
// The ranks compute between the calls, so that the network comes to rest.
constexpr int64_t kGapPs = kPsPerUs;
Job Alike(size_t calls) { return Two(std::vector<TraceOperation>(calls, AllReduce(8, kGapPs))); }

// --- Hits ----------------------------------------------------------------------------------------

TEST(EpisodeReplayerTest, WhatIsKnownHappensWithoutBeingSimulated) {
  Episodes test(OneCall());
  test.cache.Add(test.ByHand());
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, IsEmpty());
  EXPECT_EQ(test.test.EndPs(0), kReplayedPs);
  EXPECT_EQ(test.test.ledger.times()[0].replayed_by, ReplayRule::kNetwork);
  EXPECT_EQ(test.state.count, 7u);
  EXPECT_TRUE(test.episodes.has_ended_in_replay());
  EXPECT_EQ(FabricSimulatorImpl::Get().NowPs(), kReplayedPs);
}

TEST(EpisodeReplayerTest, TheStateIsThenTheOneInWhichItEnded) {
  Episodes test(Two({AllReduce(8), AllReduce(16)}));
  Episode episode = test.ByHand();
  test.state.value = 6;
  episode.end_state = test.StateNow();
  test.state.value = 5;
  test.cache.Add(episode);
  test.test.host.on_launch = [&](const Call&) { EXPECT_EQ(test.state.value, 6u); };
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(2)) << "of the second collective";
  EXPECT_EQ(test.test.BeginPs(1), kReplayedPs);
}

// The run ends with its last call: what would have been counted after it is not.
TEST(EpisodeReplayerTest, WhatIsCountedAfterTheLastCallOfARunIsNot) {
  Episodes test(OneCall());
  Episode episode = test.ByHand();
  episode.duration_ps = kReplayedPs + kPsPerUs;
  episode.changes_after_end = {{0, 2}};
  test.cache.Add(episode);
  test.test.Run();
  EXPECT_EQ(test.state.count, 5u);
}

TEST(EpisodeReplayerTest, WhatWasSimulatedOnceIsReplayedFromThenOn) {
  Episodes test(Alike(4));
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(2));
  EXPECT_EQ(test.cache.episode_count(), 1u);
  EXPECT_EQ(test.test.EndPs(3), 4 * (kCallPs + kGapPs));
  EXPECT_EQ(test.state.count, 8u);
}

TEST(EpisodeReplayerTest, AnObserverThatIsDueRefusesNothing) {
  Episodes test(OneCall());
  test.cache.Add(test.ByHand());
  test.Schedule(PendingMeans::kObserver, kPsPerUs);
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, IsEmpty());
}

TEST(EpisodeReplayerTest, AChangeThatIsDueAfterItsEndRefusesNothing) {
  Episodes test(OneCall());
  test.cache.Add(test.ByHand());
  test.Schedule(PendingMeans::kChange, kReplayedPs + 1);
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, IsEmpty());
}

// --- Refused hits: one case for each thing that may differ ---------------------------------------

struct Difference {
  std::string name;
  // Changes the episode that is known, or what it meets.
  std::function<void(Episodes&, Episode&)> make;
};
void PrintTo(const Difference& difference, std::ostream* out) { *out << difference.name; }

class RefusedHitTest : public ::testing::TestWithParam<Difference> {};

TEST_P(RefusedHitTest, IsSimulated) {
  Episodes test(OneCall());
  Episode episode = test.ByHand();
  GetParam().make(test, episode);
  test.cache.Add(std::move(episode));
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(2));
  EXPECT_EQ(test.test.EndPs(0), kCallPs);
  EXPECT_EQ(test.test.ledger.times()[0].replayed_by, ReplayRule::kNone);
}

const Difference kDifferences[] = {
    {"AValueOfTheStateDiffers", [](Episodes& t, Episode&) { t.state.value = 6; }},
    {"AnInstantOfTheStateDiffers", [](Episodes& t, Episode&) { t.state.instant_ps = kPsPerUs; }},
    {"TheStateIsNotAtRest", [](Episodes& t, Episode&) { t.state.is_quiescent = false; }},
    {"SomeStateHasNoOwner", [](Episodes& t, Episode&) { t.registry.AddUnknown("something"); }},
    {"SomethingIsUnderWay",
     [](Episodes& t, Episode&) { t.Schedule(PendingMeans::kUnderWay, kPsPerMs * 9); }},
    {"AChangeIsDueBeforeItsEnd",
     [](Episodes& t, Episode&) { t.Schedule(PendingMeans::kChange, kReplayedPs); }},
    {"SomethingUnknownIsDueBeforeItsEnd",
     [](Episodes& t, Episode&) { t.Schedule(PendingMeans::kAnything, kReplayedPs); }},
    {"TheRankOfACallDiffers",
     [](Episodes&, Episode& e) { e.operations[1].place = EpisodePlace{2}; }},
    {"ThePlanOfACallDiffers", [](Episodes&, Episode& e) { ++e.operations[1].plan; }},
    {"TheBeginOfACallDiffers", [](Episodes&, Episode& e) { e.operations[1].begin_ps = 1; }},
    {"ThereAreMoreCalls", [](Episodes&, Episode& e) { e.operations.push_back(e.operations[1]); }},
    {"ThereAreFewerCalls", [](Episodes&, Episode& e) { e.operations.pop_back(); }},
    {"PayloadWasOnItsWayAsItsLastCallEnded", [](Episodes&, Episode& e) { e.can_be_last = false; }},
    {"ACollectiveOfItIsWatched",
     [](Episodes& t, Episode&) { t.test.progress.Watch(CollectiveIndex{0}); }}};
INSTANTIATE_TEST_SUITE_P(Where, RefusedHitTest, ::testing::ValuesIn(kDifferences),
                         [](const auto& of) { return of.param.name; });

TEST(EpisodeReplayerTest, WithoutTheCacheAllIsSimulated) {
  Episodes test(OneCall(), ReplayCacheMode::kOff);
  test.cache.Add(test.ByHand());
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(2));
}

// Rest was seen 10 us after the end of the calls, and the next call begins sooner here.
TEST(EpisodeReplayerTest, AHitIsRefusedWhereTheNextCallBeginsBeforeRest) {
  Episodes test(Two({AllReduce(8), AllReduce(16, 9 * kPsPerUs)}));
  Episode episode = test.ByHand();
  episode.duration_ps += 10 * kPsPerUs;
  test.cache.Add(episode);
  test.test.Run();
  EXPECT_EQ(test.test.EndPs(0), kCallPs);
}

TEST(EpisodeReplayerTest, AHitIsGrantedWhereTheNextCallBeginsQuiescent) {
  Episodes test(Two({AllReduce(8), AllReduce(16, 10 * kPsPerUs)}));
  Episode episode = test.ByHand();
  episode.duration_ps += 10 * kPsPerUs;
  test.cache.Add(episode);
  test.test.Run();
  EXPECT_EQ(test.test.EndPs(0), kReplayedPs);
}

// The programs begin a call in the episode that was not in it.
TEST(EpisodeReplayerTest, AHitIsRefusedWhereAnotherCallBeginsMeanwhile) {
  const std::vector<TraceOperation> calls = {AllReduce(8), AllReduce(16, kPsPerUs, 1, 1)};
  Episodes test(JobOf({{0, 1}, {0, 1}}, {calls, calls}));
  test.cache.Add(test.ByHand());
  test.test.Run();
  EXPECT_EQ(test.test.EndPs(0), kCallPs);
  EXPECT_THAT(test.test.host.launched, SizeIs(4));
}

// Until an instant of its last state has passed, time changes that state: 1 us later it is another,
// 2 ms later it is the one in which the episode began.
TEST(EpisodeReplayerTest, AStateThatTimeChangesIsComparedWhenTheNextCallBegins) {
  const auto launched = [](int64_t gap_ps) {
    Episodes test(Two({AllReduce(8), AllReduce(8, gap_ps)}));
    Episode episode = test.ByHand();
    test.state.instant_ps = kPsPerMs;
    episode.end_state = test.StateNow();
    test.state.instant_ps = 0;
    test.cache.Add(episode);
    test.test.Run();
    return test.test.host.launched.size();
  };
  EXPECT_EQ(launched(kPsPerUs), 2u);
  EXPECT_EQ(launched(2 * kPsPerMs), 0u);
}

// --- Formation of episodes -----------------------------------------------------------------------

TEST(EpisodeReplayerTest, WhatDrewOrLostSomethingIsNotRepeated) {
  Episodes test(Alike(3));
  test.test.host.on_launch = [&](const Call& call) { test.state.losses += call.index == 0; };
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(4)) << "of the first and the second collective";
}

TEST(EpisodeReplayerTest, WhatAChangeFellIntoIsNotRepeated) {
  Episodes test(Alike(3));
  test.Schedule(PendingMeans::kChange, kPsPerUs);
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(4));
}

TEST(EpisodeReplayerTest, WhatIsForgottenIsSimulatedAgain) {
  Episodes test(Two({AllReduce(8), AllReduce(8)}));
  test.test.host.on_launch = [&](const Call&) {};
  test.cache.Add(test.ByHand());
  test.episodes.Forget();
  test.test.Run();
  EXPECT_EQ(test.test.EndPs(0), kCallPs);
}

// --- Verification --------------------------------------------------------------------------------

TEST(EpisodeReplayerTest, VerificationSimulatesAllOfIt) {
  Episodes test(Alike(3), ReplayCacheMode::kVerify);
  test.test.Run();
  EXPECT_THAT(test.test.host.launched, SizeIs(6));
  EXPECT_EQ(test.test.EndPs(2), 3 * (kCallPs + kGapPs));
}

TEST(EpisodeReplayerDeathTest, VerificationStopsAtAnEpisodeThatIsWrong) {
  const auto run = [](const std::function<void(Episodes&)>& spoil) {
    Episodes test(Alike(3), ReplayCacheMode::kVerify);
    test.test.host.on_launch = [&](const Call& call) {
      ++test.state.count;
      if (call.index == 1) spoil(test);
    };
    test.test.Run();
  };
  const std::string why = "is not what would have been replayed";
  EXPECT_DEATH(run([](Episodes& test) { ++test.state.count; }), why);
  EXPECT_DEATH(run([](Episodes& test) { ++test.state.value; }), why);
  EXPECT_DEATH(run([](Episodes& test) { test.test.host.channels_ps = {2 * kPsPerMs}; }), why);
}

// Changes a member while the second collective runs, which is known by then.
void SpoilRecord(const std::function<void(TestRecord&)>& spoil, ReplayCacheMode mode,
                 size_t calls = 3) {
  Episodes test(Alike(calls), mode);
  test.test.host.on_launch = [&](const Call& call) {
    ++test.state.count;
    if (call.index == 1) spoil(test.state.records[1]);
  };
  test.test.Run();
}

TEST(EpisodeReplayerDeathTest, VerificationStopsAtAFixedMemberThatChanges) {
  const auto change = [](TestRecord& record) { record.fixed = 4; };
  EXPECT_DEATH(SpoilRecord(change, ReplayCacheMode::kVerify),
               "is not what would have been replayed: the test.record\\[1\\].fixed has changed");
  // The run ends with the episode.
  EXPECT_DEATH(SpoilRecord(change, ReplayCacheMode::kVerify, 2),
               "is not what would have been replayed: the test.record\\[1\\].fixed has changed");
  SpoilRecord(change, ReplayCacheMode::kOff);
}

// The fault comes between the end of the episode and the next call, when its end is seen.
TEST(EpisodeReplayerTest, VerificationLetsAFaultAfterAnEpisodeChangeFixedMembers) {
  Episodes test(Two({AllReduce(8, kGapPs), AllReduce(8, kGapPs), AllReduce(8, 10 * kGapPs)}),
                ReplayCacheMode::kVerify);
  test.Schedule(PendingMeans::kChange, 2 * (kCallPs + kGapPs) + 5 * kGapPs);
  test.on_event = [&] { test.state.records[1].fixed = 4; };
  test.test.Run();
  EXPECT_EQ(test.state.records[1].fixed, 4u);
  EXPECT_EQ(test.episodes.episodes_verified(), 2u);
}

TEST(EpisodeReplayerDeathTest, VerificationStopsAtAMemberThatIsNotIdle) {
  const auto change = [](TestRecord& record) { record.under_way = 1; };
  EXPECT_DEATH(SpoilRecord(change, ReplayCacheMode::kVerify),
               "the network is at rest at [0-9]+ ps, but the test.record\\[1\\].under_way is not "
               "as at rest");
  SpoilRecord(change, ReplayCacheMode::kOff);
}

// A record that is opened in an episode has no value from before it.
TEST(EpisodeReplayerTest, VerificationComparesNoFixedMembersOfAnOwnerThatOpensARecord) {
  Episodes test(Alike(3), ReplayCacheMode::kVerify);
  test.test.host.on_launch = [&](const Call& call) {
    ++test.state.count;
    if (call.index == 1) test.state.records.insert(test.state.records.begin(), {.fixed = 9});
  };
  test.test.Run();
  EXPECT_EQ(test.episodes.episodes_verified(), 2u);
}

}  // namespace
}  // namespace railyard::testing
