// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/plan_cache.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/replay/streams/plan_numbers.h"
#include "tests/replay/small_replay.h"
#include "workloads/collectives/replayable.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kFloats = 1 << 20;
constexpr uint64_t kBytes = 4 * kFloats;

// Plans of a job whose ranks all make the same calls on communicator 0.
struct Plans {
  Plans(uint32_t servers, std::vector<uint32_t> ranks, const std::vector<TraceOperation>& calls)
      : graph(Servers(servers)), job(JobOfAll(servers, std::move(ranks), calls)) {}

  static Job JobOfAll(uint32_t servers, std::vector<uint32_t> ranks,
                      const std::vector<TraceOperation>& calls) {
    Programs programs(servers * 8);
    for (const uint32_t rank : ranks) programs[rank] = calls;
    return JobOf({std::move(ranks)}, programs);
  }

  FabricGraph graph;
  Job job;
  TestMoves moves;
  PlanCache plans{graph, job, NcclSettings{}, GpuCosts{}, NicSettings{}, moves};
};

// --- Bounds --------------------------------------------------------------------------------------

// In a ring of n each rank sends 2 (n - 1) / n of the vector: over its NVLinks, whose payload is
// the stated share of their rate, and two of which are the shortest way.
TEST(PlanCacheTest, BoundOfARingInAServerIsWhatItsNvlinksTake) {
  Plans test(1, {0, 1, 2, 3, 4, 5, 6, 7}, {AllReduce(kFloats)});
  uint64_t rate_bps = 0;
  int64_t latency_ps = 0;
  const DeviceId gpu = test.graph.gpus()[0];
  for (const auto edge : boost::make_iterator_range(boost::out_edges(gpu, test.graph.graph()))) {
    const LinkProperties& link = test.graph.graph()[edge];
    if (link.tier != Tier::kNvlink) continue;
    rate_bps += link.rate_bps;
    latency_ps = link.propagation_ps;
  }
  const uint64_t wire = kBytes * 2 * 7 / 8 * 1000 / test.graph.nvlink.efficiency_per_mille;
  EXPECT_EQ(test.plans.BoundOf(CollectiveIndex{0}),
            TransferTimePs(wire, rate_bps) + 2 * latency_ps);
}

// Two ranks of one rail: each sends the vector once through its NIC, in packets of 4,096 B with 82
// B of headers (RoCE v2).
TEST(PlanCacheTest, BoundOfARingOverARailIsWhatItsNicsTake) {
  Plans test(2, {0, 8}, {AllReduce(kFloats)});
  const RailOptimizedSpec spec;
  const uint64_t wire = kBytes + kBytes / 4096 * 82;
  const int64_t transfer_ps = TransferTimePs(wire, spec.nic_rate_bps);
  const DeviceId nic = *test.graph.NicOfGpu(test.graph.gpus()[0]);
  const int64_t host_ps =
      test.graph.link(test.graph.HostPath(test.graph.gpus()[0], nic).back()).propagation_ps;
  EXPECT_EQ(test.plans.BoundOf(CollectiveIndex{0}),
            transfer_ps + 2 * (host_ps + spec.nic_leaf_delay_ps));
}

// A sender whose connections have moved may have used several ways: nothing is known of its bytes.
TEST(PlanCacheTest, MovedConnectionsHaveNoPartInBounds) {
  Plans test(2, {0, 8}, {AllReduce(kFloats)});
  EXPECT_GT(test.plans.BoundOf(CollectiveIndex{0}), 0);
  test.moves.ranks = {0, 1};
  EXPECT_GT(test.plans.BoundOf(CollectiveIndex{0}), 0) << "no move was counted";
  test.moves.count = 1;
  EXPECT_EQ(test.plans.BoundOf(CollectiveIndex{0}), 0);
}

TEST(PlanCacheTest, BoundOfASendIsOfItsBytesAlone) {
  const TraceOperation send = {
      .kind = CollectiveKind::kSend, .count = kFloats, .datatype = Datatype::kFloat32, .peer = 1};
  TraceOperation receive = send;
  receive.kind = CollectiveKind::kRecv;
  receive.peer = 0;
  Programs programs(16);
  programs[0] = {send};
  programs[8] = {receive};
  const FabricGraph graph = Servers(2);
  const Job job = JobOf({{0, 8}}, programs);
  const TestMoves moves;
  PlanCache plans(graph, job, NcclSettings{}, GpuCosts{}, NicSettings{}, moves);
  // A ring of two sends as many bytes each way.
  Plans ring(2, {0, 8}, {AllReduce(kFloats)});
  EXPECT_EQ(plans.BoundOf(CollectiveIndex{0}), ring.plans.BoundOf(CollectiveIndex{0}));
  EXPECT_EQ(P2pReplayName(job.collectives[0]), "P2P");
  EXPECT_THAT(plans.OnNetworkOf(Call{GlobalRank{0}, 0}).gpus, ElementsAre(0, 8));
}

// --- Plans ---------------------------------------------------------------------------------------

TEST(PlanCacheTest, CollectivesThatAreAlikeShareAPlan) {
  Plans test(1, {0, 1, 2, 3}, {AllReduce(kFloats), AllReduce(kFloats)});
  EXPECT_EQ(&test.plans.ScheduleOf(CollectiveIndex{0}), &test.plans.ScheduleOf(CollectiveIndex{1}));
  EXPECT_EQ(test.plans.ScheduleOf(Call{GlobalRank{0}, 0}),
            test.plans.ScheduleOf(Call{GlobalRank{3}, 1}));
  EXPECT_EQ(ReplayName(test.plans.ReplayedBy(CollectiveIndex{0})), "RING/SIMPLE");
}

// One case per field of the key.
class PlanKeyTest : public ::testing::TestWithParam<int> {};

TEST_P(PlanKeyTest, CollectivesThatDifferInAFieldHavePlansOfTheirOwn) {
  TraceOperation one = AllReduce(kFloats);
  one.kind = CollectiveKind::kBroadcast;
  TraceOperation other = one;
  switch (GetParam()) {
    case 0:
      other.kind = CollectiveKind::kReduce;
      break;
    case 1:
      other.count += 1;
      break;
    case 2:
      other.datatype = Datatype::kFloat64;
      break;
    case 3:
      other.root = 1;
      break;
    case 4:
      other.algorithm = Algorithm::kUnstated;
      break;
    default:
      other.protocol = Protocol::kLl;
  }
  Plans test(1, {0, 1, 2, 3}, {one, other});
  EXPECT_NE(test.plans.KeyOf(CollectiveIndex{0}), test.plans.KeyOf(CollectiveIndex{1}));
  EXPECT_NE(&test.plans.ScheduleOf(CollectiveIndex{0}), &test.plans.ScheduleOf(CollectiveIndex{1}));
}
INSTANTIATE_TEST_SUITE_P(Fields, PlanKeyTest, ::testing::Range(0, 6));

// NCCL's base latency of Ring with Simple, 8.4 us, and with LL, 6.6 us (tuning.cc, baseLat).
TEST(PlanCacheTest, LaunchTakesWhatNcclsTunerSays) {
  TraceOperation ll = AllReduce(kFloats);
  ll.protocol = Protocol::kLl;
  Plans test(1, {0, 1, 2, 3}, {AllReduce(kFloats), ll});
  EXPECT_EQ(test.plans.CostsOf(CollectiveIndex{0}).launch_latency_ps, 8'400'000);
  EXPECT_EQ(test.plans.CostsOf(CollectiveIndex{1}).launch_latency_ps, 6'600'000);
}

TEST(PlanCacheTest, ACallInsideAServerUsesNoNic) {
  Plans test(1, {0, 1, 2, 3}, {AllReduce(kFloats)});
  EXPECT_THAT(test.plans.OnNetworkOf({GlobalRank{0}, 0}).gpus, IsEmpty());
}

// With PXN a message to GPU 1 of another server goes out by GPU 1's NIC.
TEST(PlanCacheTest, ACallMayUseTheNicOfAnotherGpuOfItsServer) {
  const auto on_network_of_send_to = [](uint32_t peer) {
    Programs programs(16);
    TraceOperation call = AllReduce(kFloats);
    call.kind = CollectiveKind::kSend;
    call.algorithm = Algorithm::kUnstated;
    call.protocol = Protocol::kUnstated;
    call.peer = peer;
    programs[0] = {call};
    call.kind = CollectiveKind::kRecv;
    call.peer = 0;
    programs[peer < 2 ? peer : peer + 6] = {call};
    const FabricGraph graph = Servers(2);
    const Job job = JobOf({{0, 1, 8, 9}}, programs);
    const TestMoves moves;
    PlanCache plans(graph, job, NcclSettings{}, GpuCosts{}, NicSettings{}, moves);
    return plans.OnNetworkOf(Call{GlobalRank{0}, 0});
  };
  EXPECT_THAT(on_network_of_send_to(2).gpus, ElementsAre(0, 8));
  EXPECT_FALSE(on_network_of_send_to(2).is_relayed);
  EXPECT_THAT(on_network_of_send_to(3).gpus, ElementsAre(1, 9));
  EXPECT_TRUE(on_network_of_send_to(3).is_relayed);
}

TEST(PlanCacheTest, RelocatedRanksAreOnTheirNewGpus) {
  Plans test(3, {0, 8}, {AllReduce(kFloats)});
  EXPECT_THAT(test.plans.OnNetworkOf({GlobalRank{0}, 0}).gpus, ElementsAre(0, 8));
  test.job.communicators[0].ranks = GlobalRanksOf({0, 16});
  test.job.memberships[16] = std::exchange(test.job.memberships[8], {});
  test.job.operations.SwapPrograms(GlobalRank{8}, GlobalRank{16});
  test.job.called.SwapPrograms(GlobalRank{8}, GlobalRank{16});
  test.plans.Relocate(PartIndex{0});
  EXPECT_THAT(test.plans.gpus(CommunicatorIndex{0}), ElementsAre(0, 16));
  EXPECT_THAT(test.plans.OnNetworkOf({GlobalRank{0}, 0}).gpus, ElementsAre(0, 16));
}

// --- Numbers -------------------------------------------------------------------------------------

TEST(PlanNumbersTest, AreEqualForCallsThatDoTheSameInCommunicatorsOfAClass) {
  Programs programs(8);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    programs[rank] = {AllReduce(kFloats, 0, rank / 4), AllReduce(2 * kFloats, 0, rank / 4),
                      AllReduce(kFloats, kPsPerUs, rank / 4)};
  }
  const FabricGraph graph = Servers(1);
  const Job job = JobOf({{0, 1, 2, 3}, {4, 5, 6, 7}}, programs);
  const TestMoves moves;
  const PlanCache plans(graph, job, NcclSettings{}, GpuCosts{}, NicSettings{}, moves);
  const CallTable calls(job);
  PlanNumbers numbers(calls);
  numbers.Number(plans, {GlobalRank{0}, 0});
  EXPECT_EQ(numbers.Of({GlobalRank{0}, 0}), numbers.Of({GlobalRank{1}, 0}));
  EXPECT_EQ(numbers.Of({GlobalRank{0}, 0}), numbers.Of({GlobalRank{0}, 2}));
  EXPECT_EQ(numbers.Of({GlobalRank{0}, 0}), numbers.Of({GlobalRank{4}, 0}));
  EXPECT_NE(numbers.Of({GlobalRank{0}, 0}), numbers.Of({GlobalRank{0}, 1}));
  numbers.Number(plans, {GlobalRank{0}, 1});
  EXPECT_NE(numbers.Of({GlobalRank{0}, 0}), numbers.Of({GlobalRank{4}, 0}));
}

}  // namespace
}  // namespace railyard::testing
