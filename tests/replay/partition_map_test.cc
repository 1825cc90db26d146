// SPDX-License-Identifier: GPL-2.0-only
// The partitions of jobs on two servers of eight GPUs, and what may touch them.
#include "simulator/replay/partitions/partition_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/replay/partitions/partition_neighbours.h"
#include "tests/replay/fake_partitions.h"
#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;

// The ranks of each communicator make one AllReduce, on a stream for each communicator, the i-th
// after i * 100 us.
constexpr int64_t kApartPs = 100 * kPsPerUs;
constexpr int64_t kLaunchPs = FakeHost::kLaunchPs;
Job JobOfCommunicators(const std::vector<std::vector<uint32_t>>& communicators) {
  Programs programs(16);
  for (uint32_t id = 0; id < communicators.size(); ++id) {
    for (const uint32_t rank : communicators[id]) {
      programs[rank].push_back(AllReduce(8, id * kApartPs, id, id));
    }
  }
  return JobOf(communicators, programs);
}

struct Map {
  explicit Map(const std::vector<std::vector<uint32_t>>& communicators,
               PartitionMap::Settings settings = {})
      : test(2, JobOfCommunicators(communicators), none),
        map(test.graph, test.calls, test.plans, host, std::move(settings)) {
    test.ledger.KeepBegun();
  }
  // Returns whether anything but collective 0 may touch its partition before then.
  bool MayTouchFirst(int64_t until_ps) {
    std::vector<Call> own;
    for (const GpuIndex gpu : test.plans.gpus(CommunicatorIndex{0}))
      own.push_back({RankOn(gpu), 0});
    const Partition& partition =
        map.partition(map.PartitionOf({RankOn(test.plans.gpus(CommunicatorIndex{0})[0]), 0}));
    return neighbours.MayTouch(partition, own, 0, until_ps);
  }

  NoReplay none;
  SmallReplay test;
  FakePartitions host;
  PartitionMap map;
  PartitionNeighbours neighbours{test.graph,   test.calls,  test.plans, map,
                                 test.streams, test.ledger, host};
};

TEST(PartitionMapTest, ServersHaveTheirNvlinksAndRailsTheirNics) {
  Map test({{0, 1, 2, 3}, {4, 12}, {0, 2, 3}, {4, 12}});
  ASSERT_EQ(test.map.count(), 2u);
  EXPECT_THAT(test.map.partition(PartitionIndex{0}).gpus, ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(test.map.partition(PartitionIndex{0}).of_nics);
  EXPECT_THAT(test.map.partition(PartitionIndex{1}).gpus, ElementsAre(4, 12));
  EXPECT_TRUE(test.map.partition(PartitionIndex{1}).of_nics);
  EXPECT_THAT(test.map.partition(PartitionIndex{1}).communicators, ElementsAre(1, 3));
  EXPECT_EQ(test.map.PartitionOf({GlobalRank{2}, 0}), 0u);
  EXPECT_EQ(test.map.PartitionOf({GlobalRank{12}, 0}), 1u);
  EXPECT_TRUE(test.map.IsOfPartitionAlone(PartitionIndex{0}, CollectiveIndex{0}));
  EXPECT_TRUE(test.map.IsOfPartitionAlone(PartitionIndex{1}, CollectiveIndex{1}));
  EXPECT_EQ(test.map.least_launch_ps(), kLaunchPs);
}

TEST(PartitionMapTest, WithoutThemThereAreNone) {
  EXPECT_EQ(Map({{0, 1, 2, 3}, {4, 12}}, {.of_nvlinks = false}).map.count(), 0u);
  EXPECT_EQ(Map({{0, 1, 2, 3}, {4, 12}}, {.of_nics = false}).map.count(), 1u);
}

// A communicator that goes over NVLinks and NICs makes none of its own.
TEST(PartitionMapTest, WhatUsesMoreIsNotAloneInAPartition) {
  Map test({{0, 1, 8, 9}});
  ASSERT_EQ(test.map.count(), 2u);
  EXPECT_EQ(test.map.PartitionOf({GlobalRank{0}, 0}), 0u);
  EXPECT_FALSE(test.map.IsOfPartitionAlone(PartitionIndex{0}, CollectiveIndex{0}));
}

TEST(PartitionMapTest, AFaultConcernsThePartitionsOfItsLinksAndGpus) {
  const auto are_faulty = [](PartitionMap::Settings settings) {
    const Map test({{0, 1, 2, 3}, {4, 12}}, std::move(settings));
    return std::pair(test.map.partition(PartitionIndex{0}).is_faulty,
                     test.map.partition(PartitionIndex{1}).is_faulty);
  };
  const FabricGraph graph = Servers(2);
  const LinkId wire = graph.WiresOfNic(*graph.NicOfGpu(graph.gpus()[4]))[0];
  EXPECT_EQ(are_faulty({}), std::pair(false, false));
  EXPECT_EQ(are_faulty({.faulty_gpus = {GpuIndex{12}}}), std::pair(false, true));
  EXPECT_EQ(are_faulty({.faulty_gpus = {GpuIndex{3}}}), std::pair(true, false));
  EXPECT_EQ(are_faulty({.faulty_links = {wire}}), std::pair(false, true));
}

TEST(PartitionMapTest, DetoursMeetThePartitionsOfTheirGpus) {
  Map test({{0, 1, 2, 3}, {4, 12}});
  EXPECT_TRUE(test.map.IsMetAt(test.map.partition(PartitionIndex{0}), GpuIndex{3}));
  EXPECT_FALSE(test.map.IsMetAt(test.map.partition(PartitionIndex{0}), GpuIndex{4}));
  EXPECT_TRUE(test.map.IsMetAt(test.map.partition(PartitionIndex{1}), GpuIndex{12}));
  EXPECT_FALSE(test.map.IsMetAt(test.map.partition(PartitionIndex{1}), GpuIndex{5}));
}

// Equal places in two servers, or on two rails, are of one class; others are not.
TEST(PartitionMapTest, CommunicatorsOfOneClassDifferInTheirServerOrRailAlone) {
  const auto classes = [](const std::vector<std::vector<uint32_t>>& communicators) {
    return Map(communicators).map.ClassesOfCommunicators();
  };
  EXPECT_THAT(classes({{0, 1, 2, 3}, {8, 9, 10, 11}}), ElementsAre(0, 0));
  EXPECT_THAT(classes({{0, 1, 2, 3}, {11, 10, 9, 8}}), ElementsAre(0, 1));
  EXPECT_THAT(classes({{0, 8}, {3, 11}}), ElementsAre(0, 0));
  EXPECT_THAT(classes({{0, 1, 8, 9}, {2, 3, 10, 11}}), ElementsAre(0, 1));
}

// The order of events depends on it.
TEST(PartitionMapTest, CommunicatorsWithOtherNumbersOnTheirGpusAreOfOtherClasses) {
  Map test({{0, 8}, {3, 11}});
  test.host.local_numbers = {0, 1};
  EXPECT_THAT(test.map.ClassesOfCommunicators(), ElementsAre(0, 1));
}

// --- Neighbours ----------------------------------------------------------------------------------

TEST(PartitionNeighboursTest, ACallOfTheSameNicsTouchesOnceItsChannelsBegin) {
  Map test({{0, 8}, {0, 8}});
  test.test.streams.Start();
  EXPECT_FALSE(test.MayTouchFirst(kApartPs + kLaunchPs));
  EXPECT_TRUE(test.MayTouchFirst(kApartPs + kLaunchPs + 1));
}

TEST(PartitionNeighboursTest, ACallOfAnotherRailNeverTouches) {
  Map test({{0, 8}, {1, 9}});
  test.test.streams.Start();
  EXPECT_FALSE(test.MayTouchFirst(kPsPerMs));
}

TEST(PartitionNeighboursTest, ACallOfTheWholeNetworkTouches) {
  Map test({{0, 8}, {0, 1, 8, 9}});
  test.test.streams.Start();
  EXPECT_FALSE(test.MayTouchFirst(kApartPs + kLaunchPs));
  EXPECT_TRUE(test.MayTouchFirst(kPsPerMs));
}

// A call that waits for nothing but an end is taken to begin at once, and a call to take what its
// launch and half the least time of its collective take.
TEST(PartitionNeighboursTest, ACallBehindOneElsewhereMayTouchAsSoonAsThatMayEnd) {
  constexpr uint64_t kBytes = 64 << 20;
  Programs programs(16);
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{8}}) programs[rank] = {AllReduce(8)};
  // GPUs 0 and 1 of the first server first, then 0 and 8 with a gap.
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}})
    programs[rank].push_back(AllReduce(kBytes, 0, 1, 1));
  programs[0].push_back(AllReduce(8, kApartPs, 2, 1));
  programs[8].push_back(AllReduce(8, kPsPerMs, 2, 1));
  NoReplay none;
  SmallReplay test(2, JobOf({{0, 8}, {0, 1}, {0, 8}}, programs), none);
  FakePartitions host;
  PartitionMap map(test.graph, test.calls, test.plans, host, {});
  PartitionNeighbours neighbours(test.graph, test.calls, test.plans, map, test.streams, test.ledger,
                                 host);
  test.ledger.KeepBegun();
  test.streams.Start();
  const std::vector<Call> own = {{GlobalRank{0}, 0}, {GlobalRank{8}, 0}};
  const Partition& rail = map.partition(map.PartitionOf({GlobalRank{8}, 0}));
  const CollectiveIndex before = test.calls.CollectiveNumberOf({GlobalRank{0}, 1});
  const int64_t touch_ps =
      map.least_launch_ps() + test.plans.BoundOf(before) / 2 + kApartPs + map.least_launch_ps();
  EXPECT_GT(test.plans.BoundOf(before), kApartPs);
  EXPECT_FALSE(neighbours.MayTouch(rail, own, 0, touch_ps));
  EXPECT_TRUE(neighbours.MayTouch(rail, own, 0, touch_ps + 1));
  EXPECT_TRUE(neighbours.Touches({GlobalRank{0}, 2}, rail));
  EXPECT_FALSE(neighbours.Touches({GlobalRank{0}, 1}, rail));
}

}  // namespace
}  // namespace railyard::testing
