// SPDX-License-Identifier: GPL-2.0-only
// Multicast and reduction in NVSwitches against closed forms.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/enum.h>
#include <ns3/uinteger.h>

#include "tests/support/gpus.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::Gpus;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// GPUs of one H100 island: four planes of 5, 4, 4 and 5 links of 200 Gb/s.
constexpr std::array<uint32_t, 4> kLinks = {5, 4, 4, 5};
constexpr uint64_t kRound = 18;  // packets that cross the planes exactly in that ratio
constexpr int64_t kCablePs = 20'000;
constexpr int64_t kForwardPs = 300'000;
// 4,096 B of payload are ceil(4,096,000 / 824) = 4,971 B on the wire: 39,768 ps on five links.
constexpr uint64_t kPayload = 4'096;
constexpr int64_t kPacketPs = 39'768;
constexpr int64_t kPacketOfFourPs = 49'710;  // on four links
constexpr int64_t kRequestPs = 256;          // 32 B on five links
constexpr int64_t kRoundPs = 5 * kPacketPs;
constexpr int64_t kOneWayPs = 2 * kCablePs + kForwardPs;

class NvlinkGroupsTest : public testing::TransportFixture {
 protected:
  void Build(uint32_t gpus, uint32_t credit_bytes = 64 << 10, PortForm form = PortForm::kShort) {
    for (GpuIndex gpu{0}; gpu < gpus; ++gpu) {
      AddInServer(DeviceKind::kGpu, 0, static_cast<int32_t>(gpu));
    }
    for (int32_t plane = 0; plane < 4; ++plane) {
      const DeviceId nvswitch = AddInServer(DeviceKind::kNvSwitch, 0, plane, kForwardPs);
      const uint32_t links = kLinks[static_cast<size_t>(plane)];
      for (const DeviceId gpu : graph_.gpus()) {
        graph_.AddCable(gpu, nvswitch,
                        {Tier::kNvlink, links * uint64_t{200'000'000'000}, kCablePs, links});
      }
    }
    BuildTransports();
    network().SetAttribute("NvlinkCreditBytes", ns3::UintegerValue(credit_bytes));
    network().SetAttribute("Form", ns3::EnumValue(static_cast<int>(form)));
    network().SetAttribute("TrajectoryHash", ns3::BooleanValue(true));
    network().Configure();
  }
  std::vector<GpuIndex> AllGpus() const {
    std::vector<GpuIndex> all(graph_.gpus().size());
    for (GpuIndex gpu{0}; gpu < all.size(); ++gpu) all[gpu] = gpu;
    return all;
  }
  // Member g's messages are of connection `first_connection` + g.
  FlowId OpenMulticast(uint32_t head, uint32_t first_connection = 0) {
    std::vector<NvlinkGroups::Member> members;
    for (const GpuIndex gpu : AllGpus()) members.push_back({gpu, Me(first_connection + gpu)});
    return load_store_->groups().OpenMulticast(GpuIndex{head}, members);
  }
  void PostMulticast(FlowId group, uint64_t bytes) {
    load_store_->groups().PostMulticast(group, bytes);
    load_store_->ServeDue();
  }
  LinkId Up(GpuIndex gpu, int plane) const { return Link(Gpu(gpu), Plane(plane)); }
  LinkId DownTo(GpuIndex gpu, int plane) const { return Link(Plane(plane), Gpu(gpu)); }
  uint64_t EgressBytes(GpuIndex gpu) {
    uint64_t bytes = 0;
    for (int plane = 0; plane < 4; ++plane) {
      bytes += network().CountersOfLink(Up(gpu, plane)).payload_bytes;
    }
    return bytes;
  }
  uint64_t IngressBytes(GpuIndex gpu) {
    uint64_t bytes = 0;
    for (int plane = 0; plane < 4; ++plane) {
      bytes += network().CountersOfLink(DownTo(gpu, plane)).payload_bytes;
    }
    return bytes;
  }
  void ExpectAllBytesAccountedFor() {
    const NetworkCounters& counters = network().counters();
    EXPECT_EQ(counters.injected_bytes + counters.replicated_bytes,
              counters.delivered_bytes + counters.reduced_bytes + counters.dropped_data_bytes() +
                  network().InFlightBytes());
    network().CheckConservation();
  }
  // Every GPU is the head of its share: it loads the sum and stores it to all, as NCCL's NVLS does.
  // Returns when the last GPU has the last share.
  int64_t RunAllReduce(uint64_t share_bytes, int messages) {
    constexpr uint32_t kLoads = 1'000;
    std::vector<FlowId> loads;
    std::vector<FlowId> stores;
    for (const GpuIndex gpu : AllGpus()) {
      loads.push_back(load_store_->groups().OpenReduce(Me(kLoads + gpu), gpu, AllGpus()));
      stores.push_back(OpenMulticast(gpu, 100 * gpu));
    }
    on_delivered_ = [&, stores](uint32_t connection) {
      if (connection < kLoads) return;
      PostMulticast(stores[connection - kLoads], share_bytes);
    };
    for (int i = 0; i < messages; ++i) {
      for (const FlowId load : loads) load_store_->groups().PostReduce(load, share_bytes);
    }
    engine().Run();
    EXPECT_THAT(delivered_,
                SizeIs(static_cast<size_t>(messages) * loads.size() * (loads.size() + 1)));
    return delivered_.back().time_ps;
  }

 private:
  static std::string Gpu(GpuIndex gpu) { return "server0/gpu" + std::to_string(gpu); }
  static std::string Plane(int plane) { return "server0/nvswitch" + std::to_string(plane); }
};

TEST_F(NvlinkGroupsTest, AStoreReachesEveryMemberAtOnce) {
  Build(4);
  PostMulticast(OpenMulticast(1), kPayload);
  engine().Run();
  const int64_t at_ps = 2 * kPacketPs + kOneWayPs;
  EXPECT_THAT(delivered_, ElementsAre(Reported{at_ps, 0}, Reported{at_ps, 1}, Reported{at_ps, 2},
                                      Reported{at_ps, 3}));
  EXPECT_EQ(network().counters().injected_bytes, kPayload);
  EXPECT_EQ(network().counters().replicated_bytes, 3 * kPayload);
  EXPECT_EQ(network().counters().delivered_bytes, 4 * kPayload);
  EXPECT_EQ(EgressBytes(GpuIndex{1}), kPayload);
  for (const GpuIndex gpu : AllGpus()) EXPECT_EQ(IngressBytes(gpu), kPayload);
  ExpectAllBytesAccountedFor();
}

TEST_F(NvlinkGroupsTest, ALoadTakesARequestThereAndBackAndOnePacketsWay) {
  Build(4);
  load_store_->groups().PostReduce(load_store_->groups().OpenReduce(Me(7), GpuIndex{2}, AllGpus()),
                                   kPayload);
  engine().Run();
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{2 * kRequestPs + kOneWayPs + 2 * kPacketPs + kOneWayPs, 7}));
  EXPECT_EQ(network().counters().injected_bytes, 4 * kPayload);
  EXPECT_EQ(network().counters().reduced_bytes, 3 * kPayload);
  EXPECT_EQ(network().counters().delivered_bytes, kPayload);
  EXPECT_EQ(network().counters().control_hops, 1u + 4u);
  for (const GpuIndex gpu : AllGpus()) {
    EXPECT_EQ(EgressBytes(gpu), kPayload);
    EXPECT_EQ(IngressBytes(gpu), gpu == 2 ? kPayload : 0);
  }
  ExpectAllBytesAccountedFor();
}

TEST_F(NvlinkGroupsTest, ALoadWaitsForTheMemberWhoseOperandComesLast) {
  Build(3);
  // GPU 1's port is taken for 50 rounds by another connection, in turns of four packets.
  PostNvlink(load_store_->Open(Me(8), GpuIndex{1}, GpuIndex{0}), 50 * kRound * kPayload);
  load_store_->groups().PostReduce(load_store_->groups().OpenReduce(Me(7), GpuIndex{2}, AllGpus()),
                                   kRound * kPayload);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_EQ(delivered_[0].connection, 7u);
  // Half of GPU 1's packets are operands until they are through: two rounds' time instead of one.
  const int64_t start_ps = 2 * kRequestPs + kOneWayPs;
  EXPECT_GE(delivered_[0].time_ps, start_ps + 2 * kRoundPs + kOneWayPs);
  EXPECT_LE(delivered_[0].time_ps, start_ps + 3 * kRoundPs + kOneWayPs);
}

TEST_F(NvlinkGroupsTest, WholeRoundsCrossThePlanesInTheRatioOfTheirLinks) {
  Build(4);
  PostMulticast(OpenMulticast(0), 10 * kRound * kPayload);
  load_store_->groups().PostReduce(load_store_->groups().OpenReduce(Me(70), GpuIndex{3}, AllGpus()),
                                   10 * kRound * kPayload);
  engine().Run();
  for (int plane = 0; plane < 4; ++plane) {
    const uint64_t bytes = 10 * uint64_t{kLinks[static_cast<size_t>(plane)]} * kPayload;
    EXPECT_EQ(network().CountersOfLink(Up(GpuIndex{0}, plane)).payload_bytes, 2 * bytes);
    EXPECT_EQ(network().CountersOfLink(Up(GpuIndex{1}, plane)).payload_bytes, bytes);
    EXPECT_EQ(network().CountersOfLink(DownTo(GpuIndex{1}, plane)).payload_bytes, bytes);
    EXPECT_EQ(network().CountersOfLink(DownTo(GpuIndex{3}, plane)).payload_bytes, 2 * bytes);
  }
  ExpectAllBytesAccountedFor();
}

// Every one of n GPUs sends S of operands and stores S/n, and receives S/n of sums and S of stores.
TEST_F(NvlinkGroupsTest, AnAllReduceTakesItsSizeAndAnNthOfItEachWay) {
  Build(8);
  constexpr uint64_t kShare = 4 * kRound * kPayload;
  constexpr uint64_t kSize = 8 * kShare;
  const int64_t end_ps = RunAllReduce(kShare, 1);
  for (const GpuIndex gpu : AllGpus()) {
    EXPECT_EQ(EgressBytes(gpu), kSize + kShare);
    EXPECT_EQ(IngressBytes(gpu), kShare + kSize);
  }
  const NetworkCounters& counters = network().counters();
  EXPECT_EQ(counters.injected_bytes, 8 * (kSize + kShare));
  EXPECT_EQ(counters.replicated_bytes, 8 * (7 * kShare));
  EXPECT_EQ(counters.reduced_bytes, 8 * (7 * kShare));
  EXPECT_EQ(counters.delivered_bytes, 8 * (kShare + kSize));
  EXPECT_EQ(network().live_packets(), 0u);
  // No sum is complete before its head's last operand; the last to be complete comes behind all
  // operands of a port, and its stores cross once more.
  EXPECT_GE(end_ps, 8 * (4 * kRoundPs) + 4 * kRoundPs + 2 * kOneWayPs);
  ExpectAllBytesAccountedFor();
}

// GPU 3 is no member, so its links carry nothing but the sum on its way down, and the copies on
// their way up. These keep up with the sum: no more than a burst of them is left when all of it is
// there, and only the last one if the head waits.
TEST_F(NvlinkGroupsTest, ASumIsStoredAsItComes) {
  constexpr uint64_t kBytes = 4 * kRound * kPayload;
  for (const int64_t wait_ps : {int64_t{0}, int64_t{1'000'000'000}}) {
    graph_ = FabricGraph();
    delivered_.clear();
    Build(4);
    const std::vector<GpuIndex> members = Gpus({0, 1, 2});
    const FlowId load = load_store_->groups().OpenReduce(Me(7), GpuIndex{3}, members);
    std::vector<NvlinkGroups::Member> receivers;
    for (const GpuIndex gpu : members) receivers.push_back({gpu, Me(10 + gpu)});
    const FlowId store = load_store_->groups().OpenMulticast(GpuIndex{3}, receivers);
    int64_t sum_ps = 0;
    on_delivered_ = [&](uint32_t connection) {
      if (connection != 7) return;
      sum_ps = engine().NowPs();
      At(sum_ps + wait_ps, [&] {
        if (wait_ps > 0) {
          for (const GpuIndex gpu : members) EXPECT_EQ(IngressBytes(gpu), kBytes - kPayload);
        }
        PostMulticast(store, kBytes);
      });
    };
    load_store_->groups().PostReduceTo(store, load, kBytes);
    engine().Run();
    const int64_t first_ps = 2 * kRequestPs + kOneWayPs + kPacketPs + kOneWayPs;
    EXPECT_GE(sum_ps, first_ps + 4 * kRoundPs);
    EXPECT_LE(sum_ps, first_ps + 4 * kRoundPs + kPacketOfFourPs);
    ASSERT_THAT(delivered_, SizeIs(4));
    for (size_t i = 1; i < 4; ++i) {
      const int64_t rest_ps = delivered_[i].time_ps - sum_ps - wait_ps - kOneWayPs;
      EXPECT_GE(rest_ps, 2 * kPacketPs);
      EXPECT_LE(rest_ps, wait_ps == 0 ? 4 * kPacketOfFourPs : 2 * kPacketOfFourPs);
    }
    for (const GpuIndex gpu : members) EXPECT_EQ(IngressBytes(gpu), kBytes);
    ExpectAllBytesAccountedFor();
    TearDown();
  }
}

// The head's port has other stores to send, so parts of messages wait for their turn.
TEST_F(NvlinkGroupsTest, SumsAndStoresOfOneGroupAreKeptSeparate) {
  Build(4);
  const FlowId load = load_store_->groups().OpenReduce(Me(7), GpuIndex{0}, AllGpus());
  const FlowId store = OpenMulticast(0, 10);
  // The head's port is taken by other stores, in turns.
  for (const uint32_t to : {1u, 2u, 3u}) {
    PostNvlink(load_store_->Open(Me(20 + to), GpuIndex{0}, GpuIndex{to}), 40 * kRound * kPayload);
  }
  uint64_t stored = 0;
  int sums = 0;
  const auto size_of = [](int sum) { return 5 * kPayload + static_cast<uint64_t>(sum) * 777; };
  on_delivered_ = [&](uint32_t connection) {
    if (connection != 7) return;
    PostMulticast(store, size_of(sums));
    stored += size_of(sums);
    if (++sums < 6) load_store_->groups().PostReduceTo(store, load, size_of(sums));
  };
  load_store_->groups().PostReduceTo(store, load, size_of(0));
  engine().Run();
  EXPECT_EQ(sums, 6);
  EXPECT_THAT(delivered_, SizeIs(3 + 6 + 4 * 6));
  EXPECT_EQ(network().counters().replicated_bytes, 3 * stored);
  ExpectAllBytesAccountedFor();
}

TEST_F(NvlinkGroupsTest, MessagesUnderWayArePipelinedUpToEight) {
  Build(4);
  const FlowId load = load_store_->groups().OpenReduce(Me(7), GpuIndex{0}, AllGpus());
  const FlowId store = OpenMulticast(0, 10);
  for (int i = 0; i < 8; ++i) {
    load_store_->groups().PostReduce(load, kPayload * static_cast<uint64_t>(1 + i));
    PostMulticast(store, 1'000);
  }
  EXPECT_DEATH(load_store_->groups().PostReduce(load, 1), "more messages than slots");
  EXPECT_DEATH(load_store_->groups().PostMulticast(store, 1), "more messages than slots");
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(8 + 4 * 8));
  PostMulticast(store, 1);
  load_store_->groups().PostReduce(load, 1);
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(9 + 4 * 9));
}

TEST_F(NvlinkGroupsTest, PiecesAreCountedForTensOfThousandsOfMessages) {
  Build(3);
  const FlowId load = load_store_->groups().OpenReduce(Me(7), GpuIndex{1}, AllGpus());
  uint64_t posted = 0;
  uint64_t bytes = 0;
  const auto post = [&] {
    const uint64_t of_message = 1 + posted++ * 7'919 % 30'000;
    bytes += of_message;
    load_store_->groups().PostReduce(load, of_message);
  };
  on_delivered_ = [&](uint32_t) {
    if (posted < 20'000) post();
  };
  for (int i = 0; i < 8; ++i) post();
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(20'000));
  EXPECT_EQ(network().counters().delivered_bytes, bytes);
  EXPECT_EQ(network().counters().reduced_bytes, 2 * bytes);
  ExpectAllBytesAccountedFor();
}

// Stores of all to all overload every link to a GPU n-fold: credits keep the NVSwitches from
// filling up.
TEST_F(NvlinkGroupsTest, CreditsHoldStoresBackWhereTheyMeet) {
  constexpr uint32_t kCredit = 16 << 10;
  Build(6, kCredit);
  for (const GpuIndex gpu : AllGpus()) {
    load_store_->groups().PostMulticast(OpenMulticast(gpu, 10 * gpu), 20 * kRound * kPayload);
  }
  load_store_->ServeDue();
  for (int64_t time_ps = 0; time_ps < 6 * (20 * kRoundPs); time_ps += 100'000) {
    At(time_ps, [this] {
      for (const GpuIndex gpu : AllGpus()) {
        for (int plane = 0; plane < 4; ++plane) {
          EXPECT_LE(network().buffers().AccountBytes(Up(gpu, plane)),
                    uint64_t{kCredit} * kLinks[static_cast<size_t>(plane)]);
          // The queue to a GPU is at most the credit of all senders.
          EXPECT_LE(network().BacklogPs(DownTo(gpu, plane)), 6 * (int64_t{kCredit} * 40 + 49'710));
        }
      }
      ExpectAllBytesAccountedFor();
    });
  }
  engine().Run();
  EXPECT_THAT(delivered_, SizeIs(36));
  EXPECT_GE(delivered_.back().time_ps, 6 * (20 * kRoundPs) + kOneWayPs);
  EXPECT_LE(delivered_.back().time_ps, 6 * (20 * kRoundPs) + kOneWayPs + 6 * kRoundPs);
}

TEST_F(NvlinkGroupsTest, BothFormsOfAPortGiveTheSameTrajectory) {
  std::vector<uint64_t> hashes;
  std::vector<int64_t> ends_ps;
  std::vector<uint64_t> general_hops;
  for (const PortForm form : {PortForm::kShort, PortForm::kGeneral}) {
    graph_ = FabricGraph();
    delivered_.clear();
    Build(5, 8 << 10, form);
    ends_ps.push_back(RunAllReduce(3 * kRound * kPayload + 1'234, 3));
    hashes.push_back(network().taps().trajectory_hash());
    general_hops.push_back(network().counters().general_hops);
    ExpectAllBytesAccountedFor();
    TearDown();
  }
  EXPECT_NE(hashes[0], 0u);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(ends_ps[0], ends_ps[1]);
  EXPECT_LT(general_hops[0], general_hops[1]);
}

TEST_F(NvlinkGroupsTest, ALostCopyBreaksItsMembersConnection) {
  Build(3);
  Down(DownTo(GpuIndex{1}, 0), 0, kNeverPs);
  PostMulticast(OpenMulticast(0, 20), kPayload);
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1));
  EXPECT_EQ(errors_[0].connection, 21u);
  EXPECT_THAT(lost_,
              ElementsAre(ReportedLoss{2 * kPacketPs + kOneWayPs, 21, DownTo(GpuIndex{1}, 0)}));
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_EQ(delivered_[0].connection, 20u);
  EXPECT_EQ(delivered_[1].connection, 22u);
  EXPECT_EQ(network().counters().dropped_data_bytes(), kPayload);
  ExpectAllBytesAccountedFor();
}

TEST_F(NvlinkGroupsTest, ALostOperandRequestOrStoreBreaksTheLoadAndTheRunEnds) {
  Build(3);
  const FlowId load = load_store_->groups().OpenReduce(Me(7), GpuIndex{0}, AllGpus());
  const FlowId store = OpenMulticast(0, 20);
  // An operand of GPU 2, on the way up.
  load_store_->groups().PostReduce(load, kRound * kPayload);
  Down(Up(GpuIndex{2}, 1), 100'000, 2'000'000);
  engine().Run();
  EXPECT_THAT(errors_, SizeIs(4));  // its four packets on that plane
  EXPECT_THAT(delivered_, IsEmpty());
  ExpectAllBytesAccountedFor();
  // The request and, of a round of stores, those of that plane, on the way up.
  errors_.clear();
  network().SetLinkUp(Up(GpuIndex{0}, 0), false);
  load_store_->groups().PostReduce(load, kPayload);
  PostMulticast(store, kRound * kPayload);
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(1 + 5));
  EXPECT_EQ(errors_.front().connection, 7u);
  EXPECT_EQ(errors_[1].connection, 20u);
  EXPECT_EQ(errors_.back().connection, 20u);
  EXPECT_THAT(delivered_, IsEmpty());
  ExpectAllBytesAccountedFor();
}

TEST_F(NvlinkGroupsTest, AGroupNeedsAnNvSwitchThatAllItsGpusShare) {
  Build(3);
  const DeviceId elsewhere = AddInServer(DeviceKind::kGpu, 1, 0);
  ASSERT_EQ(graph_.gpus().back(), elsewhere);
  load_store_->groups().OpenReduce(Me(7), GpuIndex{0}, Gpus({0, 1, 2}));
  load_store_->groups().OpenReduce(Me(7), GpuIndex{2}, Gpus({2, 1}));
  for (const auto& gpus : {Gpus({0, 3}), Gpus({0, 1, 3}), Gpus({0})}) {
    EXPECT_DEATH(load_store_->groups().OpenReduce(Me(7), GpuIndex{0}, gpus), "no NVSwitch joins");
  }
}

// Unicast shares the links of groups.
TEST_F(NvlinkGroupsTest, OtherPacketsPassTheSameSwitchesUnchanged) {
  Build(3);
  OpenMulticast(0);
  PostNvlink(load_store_->Open(Me(7), GpuIndex{0}, GpuIndex{1}), kPayload);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{2 * kPacketPs + kOneWayPs, 7}));
  EXPECT_EQ(network().counters().replicated_bytes, 0u);
}

}  // namespace
}  // namespace railyard
