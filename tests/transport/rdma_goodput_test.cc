// SPDX-License-Identifier: GPL-2.0-only
// Compares the goodput of a long message under random loss and reordering with closed forms:
// go-back-N with (1-p)/(1+p(W-1)), selective repeat with one packet per loss.
#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/rdma/rdma_transport.h"
#include "simulator/units/mix64.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kMtu = 4'096;
constexpr int64_t kFullPs = int64_t{4'096 + 82} * 20;  // at 400 Gb/s
constexpr int64_t kAckPs = int64_t{86} * 20;

class RdmaGoodputTest : public testing::TransportFixture {
 protected:
  // gpu0 - nic0 - leaf - nic1 - gpu1. From a packet's start on the wire until the NACK that the
  // next one causes has started its repetition there: `round_ps`. PCIe is quick.
  void Build(int64_t round_ps, NicSettings nic) {
    const int64_t delay_ps = (round_ps - 4 * kFullPs - 2 * kAckPs) / 4;
    const DeviceId leaf = AddSwitch("leaf0");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic_id = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(gpu, nic_id, {Tier::kHost, 16'000'000'000'000, 0, 1});
      graph_.AddCable(nic_id, leaf, {Tier::kNicLeaf, 400'000'000'000, delay_ps, 1});
    }
    nic.window_bytes = 1 << 20;
    BuildTransports(nic);
    queue_pair_ = Open(7, GpuIndex{0}, GpuIndex{1}, 99);
  }
  // Each packet is lost with probability p, but for repetitions of one lost already and the last of
  // the message: those wait for the timer, which is another curve.
  void LoseAtRandom(double p, uint32_t packets) {
    network().SetLossFilter(
        Link("server0/nic0", "leaf0"), [p, packets, draw = uint64_t{0},
                                        lost = std::set<uint32_t>()](const Packet& packet) mutable {
          if (packet.kind != PacketKind::kNetworkData || packet.sequence + 1 == packets ||
              lost.contains(packet.sequence)) {
            return false;
          }
          if (static_cast<double>(Mix64(0x5eed ^ Mix64(++draw)) >> 11) * 0x1p-53 >= p) return false;
          lost.insert(packet.sequence);
          return true;
        });
  }
  // Loses each packet that the receiver expects next with probability p, except a packet that is
  // sent again, which would wait for the timer. Packets behind a gap are useless in any case.
  void LoseInOrder(double p, uint32_t packets) {
    network().SetLossFilter(
        Link("server0/nic0", "leaf0"), [p, packets, draw = uint64_t{0}, expected = uint32_t{0},
                                        is_gap = false](const Packet& packet) mutable {
          if (packet.kind != PacketKind::kNetworkData || packet.sequence != expected) return false;
          const double drawn = static_cast<double>(Mix64(0x5eed ^ Mix64(++draw)) >> 11) * 0x1p-53;
          if (!is_gap && drawn < p && packet.sequence + 1 != packets) {
            is_gap = true;
            return true;
          }
          // Sent before the gap was known, or to fill it.
          if (is_gap && (packet.flags & Packet::kRetransmitted) == 0) return false;
          is_gap = false;
          ++expected;
          return false;
        });
  }
  int64_t TimeOf(uint32_t packets) {
    rdma_->Post(queue_pair_, PostedMessage::OfData(uint64_t{packets} * kMtu));
    engine().Run();
    EXPECT_THAT(delivered_, SizeIs(1));
    EXPECT_THAT(errors_, IsEmpty());
    EXPECT_EQ(rdma_->counters().timeouts, 0u);
    return delivered_.empty() ? 0 : delivered_[0].time_ps;
  }

  FlowId queue_pair_;
};

constexpr int64_t kRoundPs = 10'000'000;
constexpr double kWindow = static_cast<double>(kRoundPs) / kFullPs;  // packets in flight: 120
constexpr uint32_t kGibPackets = (1u << 30) / kMtu;

class RdmaGoBackNTest : public RdmaGoodputTest, public ::testing::WithParamInterface<double> {};

TEST_P(RdmaGoBackNTest, GoodputFollowsTheFormulaForLossPerWindow) {
  const double p = GetParam();
  Build(kRoundPs, {});
  LoseInOrder(p, kGibPackets);
  const auto time_ps = static_cast<double>(TimeOf(kGibPackets));
  const auto losses = static_cast<double>(rdma_->counters().nacks);
  const auto lossless_ps = static_cast<double>(kGibPackets) * kFullPs;
  // Every gap costs a round trip, to within two packets' turns.
  EXPECT_NEAR((time_ps - lossless_ps - kRoundPs) / losses, kRoundPs,
              2.0 * kFullPs + kRoundPs / losses);
  // The number of gaps is binomial: three standard deviations of it.
  const double goodput = (1 - p) / (1 + p * (kWindow - 1));
  const double deviation = p * kWindow / std::sqrt(p * kGibPackets);
  EXPECT_NEAR(lossless_ps / time_ps, goodput, 3 * deviation);
  EXPECT_LT(lossless_ps / time_ps, 1);
}

// 1.2 %, 11 % and about half are lost.
INSTANTIATE_TEST_SUITE_P(Losses, RdmaGoBackNTest, ::testing::Values(1e-4, 1e-3, 8e-3));

TEST_F(RdmaGoodputTest, SelectiveRepeatLosesOnePacketsTimePerLoss) {
  NicSettings nic;
  nic.recovery = Recovery::kSelectiveRepeat;
  // 60 packets in flight: within a NACK's bitmap.
  Build(5'000'000, nic);
  constexpr uint32_t kPackets = kGibPackets / 4;
  LoseAtRandom(1e-3, kPackets);
  const auto time_ps = static_cast<double>(TimeOf(kPackets));
  const auto lost =
      network().counters().dropped_packets[static_cast<size_t>(DropReason::kBitError)];
  EXPECT_GT(lost, 30u);
  EXPECT_EQ(rdma_->counters().retransmitted_packets, lost);
  EXPECT_EQ(Drops(DropReason::kDuplicate) + Drops(DropReason::kOutOfSequence), 0u);
  EXPECT_NEAR(time_ps, static_cast<double>(kPackets + lost) * kFullPs + 2.5e6, 1e6);
}

struct ReorderCase {
  Recovery recovery;
  uint32_t tolerance;
  bool repeats;
};
class RdmaReorderTest : public RdmaGoodputTest,
                        public ::testing::WithParamInterface<ReorderCase> {};

TEST_P(RdmaReorderTest, PacketsThatOvertakeOthersAreALossOnlyBeyondTheTolerance) {
  const auto [recovery, tolerance, repeats] = GetParam();
  // Two ways between the NICs; on one, packets take 1 us more: 12 packets' time.
  const DeviceId slow = AddSwitch("leaf0", 1'000'000);
  const DeviceId fast = AddSwitch("leaf1");
  for (int32_t server = 0; server < 2; ++server) {
    const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
    const DeviceId nic_id = AddInServer(DeviceKind::kNic, server, 0);
    graph_.AddCable(gpu, nic_id, {Tier::kHost, 16'000'000'000'000, 0, 1});
    for (const DeviceId leaf : {slow, fast}) {
      graph_.AddCable(nic_id, leaf, {Tier::kNicLeaf, 400'000'000'000, 100'000, 1});
    }
  }
  NicSettings nic;
  nic.recovery = recovery;
  nic.reorder_tolerance_packets = tolerance;
  BuildTransports(nic);
  const LinkId slow_wire = Link("server0/nic0", "leaf0");
  for (uint64_t entropy = 0;; ++entropy) {
    queue_pair_ = Open(7, GpuIndex{0}, GpuIndex{1}, entropy);
    if (rdma_->LinksOf(queue_pair_)[1] == slow_wire) break;
  }
  At(50 * kFullPs, [&] {
    routing_->SetLinkUp(slow_wire, false);
    rdma_->OnRoutesChanged();
  });
  TimeOf(100);
  // Several, since those from either way take turns in arriving.
  EXPECT_EQ(rdma_->counters().nacks > 0, repeats);
  EXPECT_EQ(rdma_->counters().retransmitted_packets > 0, repeats);
  if (!repeats) {
    EXPECT_EQ(Drops(DropReason::kOutOfSequence) + Drops(DropReason::kDuplicate), 0u);
  }
  ExpectConservation();
}

INSTANTIATE_TEST_SUITE_P(Cases, RdmaReorderTest,
                         ::testing::Values(ReorderCase{Recovery::kGoBackN, 0, true},
                                           ReorderCase{Recovery::kGoBackN, 32, false},
                                           ReorderCase{Recovery::kSelectiveRepeat, 0, true},
                                           ReorderCase{Recovery::kSelectiveRepeat, 4, true},
                                           ReorderCase{Recovery::kSelectiveRepeat, 32, false}));

}  // namespace
}  // namespace railyard
