// SPDX-License-Identifier: GPL-2.0-only
// Lanes, their connections and proxies together, without a job: the test starts programs of its
// own. GPUs 0 and 1 share NVSwitches, GPU 8 is in the other server, which a transport that only
// tests have leads to.
#include "simulator/execution/executor/lane_executor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/object.h>
#include <ns3/simulator.h>

#include "simulator/transport/stacks/network_stack_settings.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "simulator/units/units.h"
#include "tests/execution/lane_observer_double.h"
#include "tests/execution/listed_schedule.h"
#include "tests/transport/fixed_latency/fixed_latency_stack.h"
#include "topologies/generators/rail_optimized.h"
#include "workloads/layout/fabric_layout.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::ExchangeSchedule;
using ::testing::IsEmpty;
using testing::ListedSchedule;
using ::testing::Pair;
using testing::RoundSchedule;
using ::testing::UnorderedElementsAre;

// A byte takes a CTA 1 ns, which is far longer than its way over NVLink: slices are as long as the
// CTA has them be.
constexpr uint64_t kCtaRateBps = 8'000'000'000;
constexpr uint64_t kSliceBytes = 8'192;
constexpr int64_t kSlicePs = 8'192 * kPsPerNs;
constexpr int64_t kOverheadPs = 700 * kPsPerNs;
constexpr int64_t kNvlinkStepPs = 900 * kPsPerNs;
constexpr int64_t kNetworkStepPs = 2 * kPsPerUs;
// A flag's way up to an NVSwitch and down.
const int64_t kFlagPs = 2 * ServerSpec{}.nvlink_delay_ps + ServerSpec{}.nvswitch_latency_ps;

constexpr int64_t kFlowLatencyPs = 5 * kPsPerUs;
constexpr uint64_t kFlowRateBps = 65'536'000'000;
constexpr int64_t kTransferPs = kPsPerUs;  // 8,192 B
constexpr int64_t kPostPs = kPsPerUs;
constexpr int64_t kArrivalPs = kPsPerUs / 4;

constexpr const char* kStack = "fixed latency, for the lane executor";

class LaneExecutorTest : public ::testing::Test, public testing::LaneObserverDouble {
 protected:
  static void SetUpTestSuite() {
    RegisterNetworkStack(
        kStack, [](const NetworkStackParts& parts, const NetworkStackSettings& /*settings*/) {
          return std::make_unique<testing::FixedLatencyStack>(parts.network.engine(),
                                                              kFlowLatencyPs, kFlowRateBps, true);
        });
  }

  LaneExecutorTest() {
    RailOptimizedSpec spec;
    spec.servers = 2;
    graph_ = MakeRailOptimized(spec);
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->Build(graph_, FabricSimulatorImpl::Get());
    routing_.emplace(graph_, 1);
    GpuCosts costs;
    costs.proxy_post_latency_ps = kPostPs;
    costs.proxy_arrival_latency_ps = kArrivalPs;
    NetworkStackSettings stack;
    stack.name = kStack;
    executor_.emplace(graph_, *network_, *routing_, costs, stack, *this);
    std::vector<GpuIndex> gpus(graph_.gpus().size());
    std::iota(gpus.begin(), gpus.end(), GpuIndex{0});
    planner_.emplace(LayoutOf(graph_, gpus), NcclSettings{});
    executor_->connection_table().AddCommunicator({.gpus = gpus, .planner = &*planner_});
  }
  ~LaneExecutorTest() override { ns3::Simulator::Destroy(); }

  static FabricSimulatorImpl& engine() { return FabricSimulatorImpl::Get(); }

  // The rank's program, whose operation has the rank's number.
  void Start(const CollectiveSchedule& schedule, uint32_t rank, uint64_t round_rate_bps = 0,
             uint64_t iteration_bytes = 0) {
    const uint8_t costs = executor_->clock().AddCosts({.nvlink_step_latency_ps = kNvlinkStepPs,
                                                       .slice_overhead_ps = kOverheadPs,
                                                       .network_step_latency_ps = kNetworkStepPs,
                                                       .channel_rate_bps = kCtaRateBps,
                                                       .round_rate_bps = round_rate_bps,
                                                       .round_overhead_ps = kOverheadPs,
                                                       .iteration_bytes = iteration_bytes},
                                                      schedule.message_rule());
    executor_->Start({.operation = RunningIndex{rank},
                      .rank = RankIndex{rank},
                      .costs = costs,
                      .line_costs = costs,
                      .schedule = &schedule});
  }
  template <typename Action>
  void At(int64_t time_ps, Action action) {
    ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps - engine().NowPs())),
                             action);
  }
  const MessageSlots& SlotsBetween(uint32_t from, uint32_t to) {
    ConnectionTable& table = executor_->connection_table();
    return table.slots(table.Between(CommunicatorIndex{0}, 0, RankIndex{from}, RankIndex{to},
                                     ConnectionUse::kRing));
  }

  void OnChannelFinished(RunningIndex operation, int64_t end_ps,
                         const CriticalPath* /*path*/) override {
    ends_ps_.emplace(operation, end_ps);
  }

  FabricGraph graph_;
  ns3::Ptr<FabricNetwork> network_;
  std::optional<EcmpRouting> routing_;
  std::optional<LaneExecutor> executor_;
  std::optional<NcclPlanner> planner_;
  std::multimap<uint32_t, int64_t> ends_ps_;  // of channels, by rank
};

// The sender's CTA copies k slices with an overhead between two. Each is seen a flag and a step
// later, and the receiver's CTA takes as long for it.
TEST_F(LaneExecutorTest, SlicesOverNvlinkFollowOneAnotherAtTheCtasRate) {
  constexpr int64_t kSlices = 5;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, kSlices);
  Start(schedule, 0);
  Start(schedule, 1);
  engine().Run();
  const int64_t sent_ps = kSlices * kSlicePs + (kSlices - 1) * kOverheadPs;
  EXPECT_THAT(ends_ps_,
              ElementsAre(Pair(0, sent_ps), Pair(1, sent_ps + kFlagPs + kNvlinkStepPs + kSlicePs)));
}

// Two ranks exchange two slices each. Send and receive take turns until the first slice is there,
// then the receive has 6 of the 8 Gb/s of its warps for as long as the second one is being sent.
TEST_F(LaneExecutorTest, SendAndReceiveShareTheirCta) {
  const ExchangeSchedule schedule(kSliceBytes, 2);
  const uint8_t costs = executor_->clock().AddCosts({.nvlink_step_latency_ps = kNvlinkStepPs,
                                                     .slice_overhead_ps = kOverheadPs,
                                                     .channel_rate_bps = kCtaRateBps,
                                                     .warp_rate_bps = kCtaRateBps / 2,
                                                     .parts_rate_bps = kCtaRateBps * 3 / 2},
                                                    schedule.message_rule());
  for (const uint32_t rank : {0u, 1u}) {
    executor_->Start({.operation = RunningIndex{rank},
                      .rank = RankIndex{rank},
                      .costs = costs,
                      .line_costs = costs,
                      .schedule = &schedule});
  }
  engine().Run();
  const int64_t received_ps = kSlicePs + kFlagPs + kNvlinkStepPs;
  const int64_t beside_ps = 2 * kSlicePs + kOverheadPs - received_ps;
  const int64_t end_ps = received_ps + kSlicePs + beside_ps / 4 + kOverheadPs + kSlicePs;
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, end_ps), Pair(1, end_ps)));
}

TEST_F(LaneExecutorTest, AGpuAtHalfSpeedTakesTwiceTheCtasTime) {
  constexpr int64_t kSlices = 3;
  executor_->SetGpuSpeed(GpuIndex{0}, 0.5);
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, kSlices);
  Start(schedule, 0);
  Start(schedule, 1);
  engine().Run();
  const int64_t sent_ps = 2 * (kSlices * kSlicePs + (kSlices - 1) * kOverheadPs);
  EXPECT_THAT(ends_ps_,
              ElementsAre(Pair(0, sent_ps), Pair(1, sent_ps + kFlagPs + kNvlinkStepPs + kSlicePs)));
}

TEST_F(LaneExecutorTest, AGpuThatStandsStillResumesWhereItWas) {
  constexpr int64_t kResumesPs = 100 * kPsPerUs;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, 3);
  Start(schedule, 0);
  Start(schedule, 1);
  At(kSlicePs / 2,
     [this] { executor_->SetGpuSpeed(GpuIndex{0}, 0); });  // the first slice ends all the same
  At(kResumesPs, [this] { executor_->SetGpuSpeed(GpuIndex{0}, 1); });
  engine().Run();
  const int64_t sent_ps = kResumesPs + 2 * kSlicePs + kOverheadPs;
  EXPECT_THAT(ends_ps_,
              ElementsAre(Pair(0, sent_ps), Pair(1, sent_ps + kFlagPs + kNvlinkStepPs + kSlicePs)));
}

// Ten slices to a receiver that stands still: eight slots are full. Each one that is taken lets one
// more go, a flag later.
TEST_F(LaneExecutorTest, CreditsBoundWhatIsUnderWay) {
  constexpr int64_t kResumesPs = 1'000 * kPsPerUs;
  executor_->SetGpuSpeed(GpuIndex{1}, 0);
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, 10);
  Start(schedule, 0);
  Start(schedule, 1);
  At(kResumesPs - 1, [this] {
    EXPECT_EQ(SlotsBetween(0, 1).posted, 8);
    EXPECT_EQ(SlotsBetween(0, 1).consumed, 0);
    const std::vector<WaitingLane> waiting = executor_->WaitingLanes();
    ASSERT_EQ(waiting.size(), 1u);
    EXPECT_EQ(waiting[0].rank, 0u);
    EXPECT_EQ(waiting[0].peer, 1u);
    EXPECT_FALSE(waiting[0].for_data);
    EXPECT_DOUBLE_EQ(executor_->ShareOfSteps(), 8.0 / 20);
  });
  At(kResumesPs, [this] { executor_->SetGpuSpeed(GpuIndex{1}, 1); });
  engine().Run();
  // A slot is seen to be free when the receiver has taken its first slice, and one overhead later
  // than that each, as long as both CTAs take the same time.
  const int64_t first_free_ps = kResumesPs + kSlicePs + kFlagPs;
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, first_free_ps + 2 * kSlicePs + kOverheadPs),
                                    Pair(1, kResumesPs + 10 * kSlicePs + 9 * kOverheadPs)));
}

// The CTA copies for both peers before it posts to either (ScatterGatherOp,
// src/device/prims_simple.h of NCCL). Between two rounds there is one overhead.
TEST_F(LaneExecutorTest, ARoundIsPostedAtItsEnd) {
  const RoundSchedule schedule({.others = 2, .chunk_bytes = kSliceBytes, .rounds = 2});
  for (const uint32_t rank : {0u, 1u, 2u}) Start(schedule, rank);
  At(2 * kSlicePs - 1, [this] {
    EXPECT_EQ(SlotsBetween(0, 1).posted, 1);
    EXPECT_EQ(SlotsBetween(0, 1).time_ps[0], 2 * kSlicePs + kFlagPs + kNvlinkStepPs);
    EXPECT_EQ(SlotsBetween(0, 2).time_ps[0], 2 * kSlicePs + kFlagPs + kNvlinkStepPs);
  });
  engine().Run();
  const int64_t sent_ps = 4 * kSlicePs + kOverheadPs;
  const int64_t taken_ps = sent_ps + kFlagPs + kNvlinkStepPs + kSlicePs;
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, sent_ps), Pair(1, taken_ps), Pair(2, taken_ps)));
}

// The warps copy each peer's chunk in a loop of its own (ScatterGatherOp): two chunks of one and a
// half iterations take four.
TEST_F(LaneExecutorTest, ARoundTakesTheWholeIterationsOfEachOfItsSteps) {
  const RoundSchedule schedule({.others = 2, .chunk_bytes = 3 * kSliceBytes / 2, .rounds = 1});
  for (const uint32_t rank : {0u, 1u, 2u}) Start(schedule, rank, 0, kSliceBytes);
  engine().Run();
  EXPECT_EQ(ends_ps_.find(0)->second, 4 * kSlicePs);
}

// Rank 2 takes twice as long for its chunk, and rank 0 begins with neither before.
TEST_F(LaneExecutorTest, ARoundBeginsWhenAllItsMessagesAreThere) {
  executor_->SetGpuSpeed(GpuIndex{2}, 0.5);
  const RoundSchedule schedule(
      {.others = 2, .chunk_bytes = kSliceBytes, .rounds = 1, .gathers = true});
  for (const uint32_t rank : {0u, 1u, 2u}) Start(schedule, rank);
  engine().Run();
  const int64_t here_ps = 2 * kSlicePs + kFlagPs + kNvlinkStepPs;
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, here_ps + 2 * kSlicePs), Pair(1, kSlicePs),
                                    Pair(2, 2 * kSlicePs)));
}

// Rounds of two slices keep a pace of five and an overhead; a GPU at half speed begins half as
// many.
TEST_F(LaneExecutorTest, RoundsKeepTheirPace) {
  const RoundSchedule schedule({.others = 2, .chunk_bytes = kSliceBytes, .rounds = 3});
  for (const uint32_t rank : {0u, 1u, 2u}) Start(schedule, rank, kCtaRateBps * 2 / 5);
  engine().Run();
  const int64_t pace_ps = 5 * kSlicePs + kOverheadPs;
  EXPECT_EQ(ends_ps_.find(0)->second, 2 * pace_ps + 2 * kSlicePs);

  ends_ps_.clear();
  const int64_t begin_ps = engine().NowPs();
  executor_->SetGpuSpeed(GpuIndex{0}, 0.5);
  for (const uint32_t rank : {0u, 1u, 2u}) Start(schedule, rank, kCtaRateBps * 2 / 5);
  engine().Run();
  EXPECT_EQ(ends_ps_.find(0)->second - begin_ps, 2 * (2 * pace_ps + 2 * kSlicePs));
}

// Both ranks send, then receive. The clear-to-send came while the CTA copied.
TEST_F(LaneExecutorTest, AnExchangeOverTheNetworkPaysForItsProxies) {
  const ListedSchedule schedule(
      {}, 1,
      {{0, {ListedSchedule::Sends(8, kSliceBytes), ListedSchedule::Receives(8, kSliceBytes)}},
       {8, {ListedSchedule::Sends(0, kSliceBytes), ListedSchedule::Receives(0, kSliceBytes)}}});
  Start(schedule, 0);
  Start(schedule, 8);
  engine().Run();
  const int64_t end_ps =
      kSlicePs + kNetworkStepPs + kPostPs + kTransferPs + kFlowLatencyPs + kArrivalPs + kSlicePs;
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, end_ps), Pair(8, end_ps)));
}

// Two channels have one proxy on either side: the second channel's message is posted one post
// later.
TEST_F(LaneExecutorTest, ChannelsShareTheirGpusProxy) {
  const ListedSchedule schedule({}, 2,
                                {{0, {ListedSchedule::Sends(8, kSliceBytes)}},
                                 {8, {ListedSchedule::Receives(0, kSliceBytes)}}});
  Start(schedule, 0);
  Start(schedule, 8);
  engine().Run();
  const int64_t end_ps =
      kSlicePs + kNetworkStepPs + kPostPs + kTransferPs + kFlowLatencyPs + kArrivalPs + kSlicePs;
  EXPECT_THAT(ends_ps_, UnorderedElementsAre(Pair(0, kSlicePs), Pair(0, kSlicePs), Pair(8, end_ps),
                                             Pair(8, end_ps + kPostPs)));
}

// Without a receiver nothing is granted: a sender fills its eight slots and posts none.
TEST_F(LaneExecutorTest, NothingIsPostedThatIsNotGranted) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kSliceBytes, 10);
  Start(schedule, 0);
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 8).posted, 8);
  EXPECT_EQ(SlotsBetween(0, 8).progress.staged, 8);
  EXPECT_EQ(SlotsBetween(0, 8).progress.sent, 0);
  EXPECT_THAT(ends_ps_, IsEmpty());
  Start(schedule, 8);
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 8).consumed, 10);
  EXPECT_EQ(ends_ps_.size(), 2u);
}

// The connection's sending side is the first program's until its last slice is sent, however long
// that takes.
TEST_F(LaneExecutorTest, ASideOfAConnectionHasOneOwnerAtATime) {
  constexpr int64_t kResumesPs = 1'000 * kPsPerUs;
  executor_->SetGpuSpeed(GpuIndex{1}, 0);
  const ListedSchedule first = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, 10);
  const ListedSchedule second = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, 1);
  Start(first, 0);
  Start(second, 0);
  Start(first, 1);
  Start(second, 1);
  At(kResumesPs - 1, [this] {
    EXPECT_EQ(SlotsBetween(0, 1).posted, 8);
    EXPECT_EQ(executor_->WaitingLanes().size(), 2u);
  });
  At(kResumesPs, [this] { executor_->SetGpuSpeed(GpuIndex{1}, 1); });
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 1).consumed, 11);
  EXPECT_EQ(ends_ps_.count(0), 2u);
  EXPECT_EQ(ends_ps_.count(1), 2u);
}

// A part that is ended takes nothing any more.
TEST_F(LaneExecutorTest, AClosedPartEndsWhereItIs) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kSliceBytes, 5);
  Start(schedule, 0);
  Start(schedule, 1);
  At(2 * kSlicePs, [this] { EXPECT_EQ(executor_->Close(PartIndex{0}).size(), 1u); });
  engine().Run();
  EXPECT_THAT(ends_ps_, IsEmpty());
  EXPECT_THAT(executor_->WaitingLanes(), IsEmpty());
}

}  // namespace
}  // namespace railyard
