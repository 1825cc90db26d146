// SPDX-License-Identifier: GPL-2.0-only
// The host of partitions on a network and its executor: two servers of eight GPUs
// whose ranks have made one AllReduce in each server and one on each of two rails.
#include "simulator/replay/partitions/executor_partitions.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/simulator.h>

#include "simulator/units/units.h"
#include "tests/execution/listed_schedule.h"
#include "tests/replay/replay_fixture.h"
#include "tests/support/gpus.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ExecutorPartitionsTest : public ReplayFixture {
 protected:
  static constexpr uint64_t kFloats = 1 << 16;

  ExecutorPartitionsTest() : ReplayFixture(2) {
    Programs programs = Idle();
    for (uint32_t i = 0; i < kCommunicators.size(); ++i) {
      for (const uint32_t rank : kCommunicators[i]) {
        programs[rank].push_back(AllReduce(kFloats, kPsPerMs, i));
      }
    }
    Build(JobOf(kCommunicators, programs));
    host_.emplace(*network_, replay_->executor(), false);
  }

  static Partition OfNvlinks(const std::vector<GpuIndex>& gpus) { return {.gpus = gpus}; }
  Partition OfNics(const std::vector<GpuIndex>& gpus) {
    Partition partition{.gpus = gpus, .of_nics = true};
    for (CommunicatorIndex i{}; i < kCommunicators.size(); ++i) {
      if (std::ranges::equal(kCommunicators[i], gpus)) partition.communicators = {i};
    }
    partition.nics.version = UINT64_MAX;  // never made
    host_->Renew(partition);
    return partition;
  }
  StateSnapshot StateOf(const Partition& partition) {
    StateArchive archive(engine().NowPs());
    host_->Visit(partition, archive);
    EXPECT_TRUE(archive.is_quiescent());
    return archive.TakeState();
  }

  // Two servers, and two rails.
  const std::vector<std::vector<uint32_t>> kCommunicators = {
      {0, 1, 2}, {8, 9, 10}, {4, 12}, {5, 13}};
  std::optional<ExecutorPartitions> host_;
};

TEST_F(ExecutorPartitionsTest, ConnectionsAreOpenOnceACollectiveHasUsedThem) {
  const auto schedule = ListedSchedule::OneWay({}, 1, 0, 8'192, 4);  // one hop of a ring of two
  EXPECT_FALSE(host_->AreAllOpen(CommunicatorIndex{2}, schedule));
  Run();
  EXPECT_TRUE(host_->AreAllOpen(CommunicatorIndex{2}, schedule));
}

TEST_F(ExecutorPartitionsTest, ARankIsNumberedAmongTheCommunicatorsOfItsGpu) {
  EXPECT_EQ(host_->LocalNumberOf(CommunicatorIndex{3}, RankIndex{0}), 0u);
}

TEST_F(ExecutorPartitionsTest, AHaltedGpuStandsStill) {
  EXPECT_FALSE(host_->StandsStill(GpuIndex{3}));
  replay_->SetGpuSpeed(GpuIndex{3}, 0);
  EXPECT_TRUE(host_->StandsStill(GpuIndex{3}));
  EXPECT_FALSE(host_->StandsStill(GpuIndex{4}));
}

TEST_F(ExecutorPartitionsTest, WithoutFailoverNoConnectionMoves) {
  EXPECT_FALSE(host_->MayMoveConnections());
}

TEST_F(ExecutorPartitionsTest, TheConnectionsOfNicsAreRenewedWhenSomeWereOpened) {
  Partition rail = OfNics(Gpus({4, 12}));
  EXPECT_THAT(rail.nics.connections, IsEmpty());
  host_->Renew(rail);
  EXPECT_THAT(rail.nics.connections, IsEmpty());
  Run();
  host_->Renew(rail);
  EXPECT_THAT(rail.nics.connections, ::testing::Not(IsEmpty()));
  EXPECT_TRUE(rail.nics.at.has_value());
  // Nothing has changed since, so that the list stays.
  rail.nics.connections.clear();
  host_->Renew(rail);
  EXPECT_THAT(rail.nics.connections, IsEmpty());
}

TEST_F(ExecutorPartitionsTest, LikePartitionsWithOneHistoryAreEqual) {
  Run();
  const Partition first = OfNvlinks(Gpus({0, 1, 2}));
  const Partition second = OfNvlinks(Gpus({8, 9, 10}));
  EXPECT_EQ(host_->IdentityOf(first), host_->IdentityOf(second));
  EXPECT_EQ(StateOf(first), StateOf(second));
  const Partition rail = OfNics(Gpus({4, 12}));
  const Partition next_rail = OfNics(Gpus({5, 13}));
  EXPECT_EQ(host_->IdentityOf(rail), host_->IdentityOf(next_rail));
  EXPECT_EQ(StateOf(rail), StateOf(next_rail));
}

TEST_F(ExecutorPartitionsTest, AGpuWithoutTrafficHasAnotherIdentity) {
  Run();
  EXPECT_NE(host_->IdentityOf(OfNvlinks(Gpus({0, 1, 2}))),
            host_->IdentityOf(OfNvlinks(Gpus({8, 9, 11}))));
}

// Only NICs share counters with the rest of the network.
TEST_F(ExecutorPartitionsTest, CountersOfTheNetworkAreVisitedForNicsAlone) {
  Run();
  const auto counts_of = [this](const Partition& partition) {
    StateArchive archive(engine().NowPs());
    host_->VisitCounters(partition, archive);
    size_t counts = 0;
    for (const std::vector<uint64_t>& section : archive.TakeCounts()) counts += section.size();
    return counts;
  };
  EXPECT_EQ(counts_of(OfNvlinks(Gpus({0, 1, 2}))), 0u);
  EXPECT_GT(counts_of(OfNics(Gpus({4, 12}))), 0u);
}

TEST_F(ExecutorPartitionsTest, GpusOfARailAreAtRestOnceNothingIsUnderWay) {
  const Partition rail = OfNics(Gpus({4, 12}));
  EXPECT_THAT(host_->PeersOf(rail, EpisodePlace{0}), IsEmpty()) << "nothing is connected";
  Run();
  Partition connected = OfNics(Gpus({4, 12}));
  EXPECT_THAT(host_->PeersOf(connected, EpisodePlace{0}), ElementsAre(1));
  EXPECT_THAT(host_->PeersOf(connected, EpisodePlace{1}), ElementsAre(0));
  EXPECT_TRUE(host_->IsAtRest(connected, EpisodePlace{0}));
}

TEST_F(ExecutorPartitionsTest, ASimulationAheadLeavesTheStateAsItWas) {
  Run();
  for (const Partition& partition : {OfNvlinks(Gpus({0, 1, 2})), OfNics(Gpus({4, 12}))}) {
    const StateSnapshot before = StateOf(partition);
    EXPECT_TRUE(host_->BeginIndependent(partition));
    EXPECT_TRUE(host_->BeginAhead(partition));
    host_->EndAhead(partition);
    host_->EndIndependent(partition);
    EXPECT_EQ(StateOf(partition), before);
  }
}

// Rank 4 begins an AllReduce a millisecond before rank 12, whose clear-to-sends it needs.
class WaitingRankTest : public ReplayFixture {
 protected:
  WaitingRankTest() : ReplayFixture(2) {
    Programs programs = Idle();
    programs[4] = {AllReduce(1 << 16, kPsPerMs)};
    programs[12] = {AllReduce(1 << 16, 2 * kPsPerMs)};
    Build(JobOf({{4, 12}}, programs));
    host_.emplace(*network_, replay_->executor(), false);
  }
  // Returns whether rank 4 waits for rank 12, and the other way around, at each of these times.
  std::vector<std::pair<bool, bool>> WaitsAt(const std::vector<int64_t>& times_ps) {
    std::vector<std::pair<bool, bool>> waits;
    for (const int64_t time_ps : times_ps) {
      ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(time_ps)), [this, &waits] {
        const CommunicatorIndex communicator{0};
        waits.emplace_back(host_->WaitsFor(communicator, GpuIndex{4}, GpuIndex{12}),
                           host_->WaitsFor(communicator, GpuIndex{12}, GpuIndex{4}));
      });
    }
    Run();
    return waits;
  }
  std::optional<ExecutorPartitions> host_;
};

TEST_F(WaitingRankTest, WaitsOnceItsClearToSendsHaveArrived) {
  // It has launched after 8.4 us. The other one has not begun, so that rank 4 may send it nothing.
  EXPECT_THAT(WaitsAt({kPsPerMs + kPsPerMs / 2}), ElementsAre(std::pair(true, false)));
}

TEST_F(WaitingRankTest, DoesNotWaitBeforeItsLaunchNorWhileMessagesAreUnderWay) {
  EXPECT_THAT(WaitsAt({kPsPerMs + 4 * kPsPerUs, 2 * kPsPerMs + 20 * kPsPerUs}),
              ElementsAre(std::pair(true, true), std::pair(false, false)));
}

}  // namespace
}  // namespace railyard::testing
