// SPDX-License-Identifier: GPL-2.0-only
// The replay of a job on packets, constructed alone: two servers of eight GPUs whose sixteen ranks
// repeat an AllReduce. The test is the replay's observer.
#include "simulator/replay/engine/replay_engine.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/object.h>
#include <ns3/simulator.h>

#include "simulator/units/units.h"
#include "tests/replay/replay_fixture.h"
#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint32_t kRanks = 16;
constexpr uint64_t kFloats = 1 << 20;

// Each rank calls an AllReduce of 4 MiB so many times, and computes for 1 ms before each.
Job Repeated(size_t calls) {
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < kRanks; ++rank) ranks.push_back(rank);
  return JobOf({ranks},
               Programs(kRanks, std::vector<TraceOperation>(calls, AllReduce(kFloats, kPsPerMs))));
}

// So many AllReduces of GPU 0 and GPU 8 alone, whose two ranks end at one instant.
Job RepeatedByTwo(size_t calls) {
  Programs programs(kRanks);
  programs[0] = programs[8] = std::vector<TraceOperation>(calls, AllReduce(kFloats, kPsPerMs));
  return JobOf({{0, 8}}, programs);
}

class ReplayEngineTest : public ReplayFixture {
 protected:
  ReplayEngineTest() : ReplayFixture(2) {}

  // The cable from server 0's first NIC to its leaf.
  LinkId FirstUplink() const {
    for (LinkId id{0}; id < graph_.link_count(); ++id) {
      if (graph_.link(id).name.starts_with("server0/nic0>leaf")) return id;
    }
    ADD_FAILURE() << "no cable";
    return LinkId{0};
  }
  GpuIndex SenderOf(ConnectionId connection) const {
    return replay_->executor().connection_table().connections()[connection].from_gpu;
  }

  void OnPacketLost(ConnectionId connection, const FlowLoss& loss) override {
    lost_.push_back({SenderOf(connection), loss.reason, loss.link});
  }
  void OnPacketRepeated(ConnectionId /*connection*/, uint32_t payload_bytes) override {
    repeated_bytes_ += payload_bytes;
  }
  void OnRetransmission(ConnectionId /*connection*/) override { ++retransmissions_; }
  void OnLossRecovered(ConnectionId /*connection*/) override { ++recoveries_; }
  void OnRankError(GlobalRank rank, const std::string& why) override {
    errors_.emplace_back(rank, why);
    if (errors_.size() > 1) return;
    At(ReplayEngine::kAbortNoticePs, [this] { replay_->Abort(PartIndex{0}, "a rank has failed"); });
  }
  void OnConnectionClosed(ConnectionId /*connection*/) override { ++closed_; }
  void OnPartRestarted(PartIndex part) override { restarted_.push_back(part); }
  void OnCollectiveProgress(CollectiveIndex collective, double progress) override {
    progress_.emplace_back(collective, progress);
  }

  struct Lost {
    GpuIndex from;
    DropReason reason;
    LinkId link;
  };

  std::vector<Lost> lost_;
  uint64_t repeated_bytes_ = 0;
  uint32_t retransmissions_ = 0;
  uint32_t recoveries_ = 0;
  std::vector<std::pair<uint32_t, std::string>> errors_;
  uint32_t closed_ = 0;
  std::vector<uint32_t> restarted_;
  std::vector<std::pair<uint32_t, double>> progress_;
};

// A ring sends 2 (n - 1) / n of the buffer through each rank, and no faster than its NIC.
TEST_F(ReplayEngineTest, CallsEndAfterTheirBoundAndAreCounted) {
  Build(Repeated(3), ReplayCacheMode::kOff);
  Run();
  EXPECT_TRUE(replay_->is_complete());
  const CallLedger& ledger = replay_->ledger();
  EXPECT_EQ(ledger.calls_started(), 3 * kRanks);
  EXPECT_EQ(ledger.calls_left(), 0u);
  EXPECT_EQ(ledger.collectives_ended(), 3u);
  EXPECT_EQ(ledger.collectives_replayed(), 0u);
  ASSERT_THAT(ledger.times(), SizeIs(3));
  for (const CollectiveTimes& times : ledger.times()) {
    EXPECT_GE(times.last_end_ps - times.first_start_ps, times.bound_ps);
    EXPECT_GT(times.bound_ps, 0);
  }
  EXPECT_EQ(replay_->end_ps(), ledger.times().back().last_end_ps);
  EXPECT_EQ(replay_->ShareDone(), 1.0);
  EXPECT_THAT(replay_->ExplainWaiting(), IsEmpty());
}

TEST_F(ReplayEngineTest, ReplayedCallsHaveTheTimesOfSimulatedOnes) {
  constexpr size_t kCalls = 12;
  Build(RepeatedByTwo(kCalls), ReplayCacheMode::kOff);
  Run();
  const TimesHashSums simulated = replay_->TimesHash();
  const int64_t simulated_end_ps = replay_->end_ps();
  const uint64_t hops = network_->counters().packet_hops;

  replay_.reset();
  ns3::Simulator::Destroy();
  network_ = ns3::CreateObject<FabricNetwork>();
  network_->Build(graph_, FabricSimulatorImpl::Get());
  network_->SetRouting(*routing_);
  Build(RepeatedByTwo(kCalls), ReplayCacheMode::kOn);
  Run();
  EXPECT_GT(replay_->ledger().collectives_replayed(), kCalls / 2);
  EXPECT_EQ(replay_->ledger().times().back().replayed_by, ReplayRule::kNetwork);
  EXPECT_EQ(replay_->TimesHash(), simulated);
  EXPECT_EQ(replay_->end_ps(), simulated_end_ps);
  EXPECT_EQ(network_->counters().packet_hops, hops);
  EXPECT_THAT(replay_->replay_obstacles(), IsEmpty());
}

// A registration of events names the state that they change. An unnamed state may be anything.
TEST_F(ReplayEngineTest, EventsOfUnknownStatePreventReplay) {
  struct Forgotten final : StateOwner {
    std::string state_name() const override { return "forgotten"; }
    void Visit(StateArchive& /*archive*/) override {}
  } forgotten;
  const auto replayed = [this](const EventState& state) {
    replay_.reset();
    ns3::Simulator::Destroy();
    network_ = ns3::CreateObject<FabricNetwork>();
    network_->Build(graph_, engine());
    network_->SetRouting(*routing_);
    Build(RepeatedByTwo(12), ReplayCacheMode::kOn);
    engine().Register(
        EventClass{50}, {.name = "pings", .state = state}, [](void*, uint32_t) {}, nullptr);
    Run();
    return replay_->ledger().collectives_replayed();
  };
  EXPECT_GT(replayed({.why_none = "they only read"}), 6u);
  EXPECT_THAT(replay_->replay_obstacles(), IsEmpty());
  for (const EventState& state : {EventState{}, EventState{.owner = &forgotten}}) {
    EXPECT_EQ(replayed(state), 0u);
    EXPECT_THAT(replay_->replay_obstacles(),
                ElementsAre(ReplayObstacle{"pings", "it registers no state"}));
  }
}

TEST_F(ReplayEngineTest, TheObserverReceivesAWatchedCollectivesProgress) {
  Build(Repeated(2), {.cache = ReplayCacheMode::kOff, .watched = {CollectiveIndex{1}}});
  Run();
  ASSERT_THAT(progress_, SizeIs(Ge(3u)));
  EXPECT_EQ(progress_.front(), std::pair(1u, 0.0));
  EXPECT_EQ(progress_.back(), std::pair(1u, 1.0));
  EXPECT_TRUE(std::ranges::is_sorted(progress_));
}

TEST_F(ReplayEngineTest, TheObserverReceivesALossAndItsRepair) {
  Build(Repeated(1), ReplayCacheMode::kOff);
  const LinkId uplink = FirstUplink();
  network_->SetLossFilter(uplink, [lost = false](const Packet& packet) mutable {
    return packet.kind == PacketKind::kNetworkData && !std::exchange(lost, true);
  });
  Run();
  EXPECT_TRUE(replay_->is_complete());
  ASSERT_THAT(lost_, Not(IsEmpty()));
  EXPECT_EQ(lost_.front().reason, DropReason::kBitError);
  EXPECT_EQ(lost_.front().link, uplink);
  EXPECT_LT(lost_.front().from, GpuIndex{8});
  EXPECT_GE(retransmissions_, 1u);
  EXPECT_GT(repeated_bytes_, 0u);
  EXPECT_EQ(recoveries_, 1u);
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(ReplayEngineTest, ARanksErrorIsTheObserversToDecide) {
  Build(Repeated(2), ReplayCacheMode::kOff);
  network_->SetLinkUp(FirstUplink(), false);
  Run();
  ASSERT_THAT(errors_, Not(IsEmpty()));
  EXPECT_LT(errors_.front().first, 8u);
  EXPECT_THAT(errors_.front().second, HasSubstr(" to rank "));
  EXPECT_FALSE(replay_->ledger().IsAnyPartUp());
  EXPECT_EQ(replay_->ledger().parts()[0].abort_reason, "a rank has failed");
  EXPECT_EQ(replay_->end_ps(), replay_->EndOfPartPs(PartIndex{0}));
}

TEST_F(ReplayEngineTest, AHaltedPartRestartsAtTheOperationsThatItIsGiven) {
  Build(Repeated(3), ReplayCacheMode::kOff);
  constexpr int64_t kRestartPs = 500 * kPsPerMs;
  At(kPsPerMs + 50 * kPsPerUs, [this] {
    EXPECT_TRUE(replay_->is_in_collective());
    replay_->Halt(PartIndex{0});
    EXPECT_FALSE(replay_->ledger().IsAnyPartUp());
  });
  At(kRestartPs,
     [this] { replay_->RestartAt(PartIndex{0}, std::vector<uint32_t>(kRanks, 1), {}); });
  Run();
  EXPECT_TRUE(replay_->is_complete());
  EXPECT_GT(closed_, 0u);
  EXPECT_THAT(restarted_, ElementsAre(0u));
  const std::vector<CollectiveTimes>& times = replay_->ledger().times();
  EXPECT_EQ(times[0].last_end_ps, kNeverPs);
  EXPECT_GE(times[1].first_start_ps, kRestartPs);
  EXPECT_GE(times[2].first_start_ps, times[1].first_start_ps);
}

}  // namespace
}  // namespace railyard::testing
