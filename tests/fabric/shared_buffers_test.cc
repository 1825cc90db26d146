// SPDX-License-Identifier: GPL-2.0-only
// Accounts and shared buffers alone. A port may take alpha times what is left of the buffer: with
// alpha 1 and 9,000 B, an account of b B in a pool of p B is above its share if b > 9,000 - p.
#include "simulator/fabric/buffer/shared_buffers.h"

#include <vector>

#include <gtest/gtest.h>

#include "simulator/fabric/buffer/channel_accounts.h"
#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

class AccountsTest : public testing::TablesFixture {};

TEST_F(AccountsTest, CreditsAreTakenUpToTheLimitAndGivenBack) {
  accounts_[FirstChannelOf(from_left_)].has_credits = 1;
  accounts_[FirstChannelOf(from_left_)].set_buffer_or_limit(1'000);
  EXPECT_TRUE(accounts_.TakeCredit(FirstChannelOf(from_left_), 600));
  EXPECT_FALSE(accounts_.TakeCredit(FirstChannelOf(from_left_), 401));
  EXPECT_TRUE(accounts_.TakeCredit(FirstChannelOf(from_left_), 400));
  EXPECT_FALSE(accounts_.HasCredit(FirstChannelOf(from_left_), 1));
  EXPECT_FALSE(accounts_.GiveBackCredit(FirstChannelOf(from_left_), 600)) << "nobody waits";
  accounts_[FirstChannelOf(from_left_)].is_waited_for = 1;
  EXPECT_TRUE(accounts_.GiveBackCredit(FirstChannelOf(from_left_), 400));
  EXPECT_EQ(accounts_[FirstChannelOf(from_left_)].bytes, 0u);
}

TEST_F(AccountsTest, APacketLargerThanTheLimitGoesAloneInItsTurn) {
  accounts_[FirstChannelOf(from_left_)].has_credits = 1;
  accounts_[FirstChannelOf(from_left_)].set_buffer_or_limit(1'000);
  EXPECT_FALSE(accounts_.TakeCreditAhead(FirstChannelOf(from_left_), 1'500));
  EXPECT_TRUE(accounts_.TakeCredit(FirstChannelOf(from_left_), 1'500));
  EXPECT_FALSE(accounts_.TakeCredit(FirstChannelOf(from_left_), 1));
}

TEST_F(AccountsTest, ControlHoldsNoCredit) {
  accounts_[FirstChannelOf(from_left_)].has_credits = 1;
  const PacketId data = MakePacket(from_left_, 1'000);
  const PacketId control = MakePacket(from_left_, 64, PacketKind::kCnp);
  EXPECT_EQ(accounts_.CreditBytesOf(tables_.packets[data]), 1'000u);
  EXPECT_EQ(accounts_.CreditBytesOf(tables_.packets[control]), 0u);
}

TEST_F(AccountsTest, APoolIsCalmUpToItsBound) {
  accounts_.AddPool({.bytes = 0, .calm_bytes = 2'000});
  accounts_[FirstChannelOf(from_left_)].set_buffer_or_limit(1);
  const Packet& packet =
      tables_.packets[MakePacketFrom(FirstChannelOf(from_left_), to_right_, 1'000)];
  EXPECT_TRUE(accounts_.Enter(packet));
  EXPECT_TRUE(accounts_.Enter(packet));
  EXPECT_FALSE(accounts_.Enter(packet));
  EXPECT_EQ(accounts_.pool(BufferId{1}).bytes, 3'000);
  accounts_.Leave(accounts_[FirstChannelOf(from_left_)], 1'000);
  EXPECT_EQ(accounts_.pool(BufferId{1}).bytes, 2'000);
  EXPECT_EQ(accounts_[FirstChannelOf(from_left_)].bytes, 2'000u);
}

class SharedBuffersTest : public testing::TablesFixture {
 protected:
  static constexpr BufferSettings kSettings = {
      .buffer_bytes = 9'000, .alpha = 1, .xon_offset_bytes = 500};

  void AddLeaf(bool is_lossless) {
    buffers_.Reset();
    buffers_.Add(leaf_, kSettings, is_lossless);
    for (LinkId link{0}; link < graph_.link_count(); ++link) buffers_.AddEgress(link);
    for (const LinkId ingress : {from_left_, from_right_}) {
      accounts_[FirstChannelOf(ingress)].set_buffer_or_limit(buffers_.OfDevice(leaf_));
      buffers_.SetHeadroom(FirstChannelOf(ingress), 2'500);
    }
  }
  // A packet comes in by `ingress` for to_right_.
  SharedBuffers::Admission Come(LinkId ingress, uint32_t wire_bytes) {
    const PacketId index = MakePacketFrom(FirstChannelOf(ingress), to_right_, wire_bytes);
    Packet& packet = tables_.packets[index];
    if ((tables_.links[to_right_].send_flags & LinkRecord::kTailDrop) != 0) {
      const SharedBuffers::Admission admission = buffers_.AdmitToLossy(packet);
      if (!admission.is_kept) return admission;
    }
    there_.push_back(index);
    if (accounts_.Enter(packet)) return {};
    return buffers_.AdmitToLossless(packet);
  }
  void Leave(size_t which) { buffers_.CountOut(tables_.packets[there_[which]]); }
  std::vector<VirtualChannelId> Release() {
    std::vector<VirtualChannelId> released;
    buffers_.ReleaseXoffs(buffers_.OfDevice(leaf_),
                          [&](VirtualChannelId channel) { released.push_back(channel); });
    return released;
  }
  int64_t PoolBytes() const { return accounts_.pool(buffers_.OfDevice(leaf_)).bytes; }

  SharedBuffers buffers_{tables_, accounts_};
  std::vector<PacketId> there_;
};

TEST_F(SharedBuffersTest, PortsSendOutOfTheBufferOfTheirSource) {
  AddLeaf(true);
  EXPECT_EQ(buffers_.OfSource(from_left_), kNoBuffer);
  EXPECT_EQ(buffers_.OfSource(to_right_), buffers_.OfDevice(leaf_));
  EXPECT_EQ(buffers_[buffers_.OfDevice(leaf_)].egress, (std::vector<LinkId>{to_left_, to_right_}));
  EXPECT_EQ(buffers_[buffers_.OfDevice(leaf_)].device, leaf_);
}

TEST_F(SharedBuffersTest, AnIngressIsPausedOnceItIsAboveItsShare) {
  AddLeaf(true);
  EXPECT_FALSE(Come(from_left_, 3'000).sends_xoff);
  EXPECT_FALSE(Come(from_right_, 3'000).sends_xoff) << "3,000 B of the 3,000 B left";
  EXPECT_FALSE(buffers_.IsEventful(buffers_.OfDevice(leaf_)));
  const SharedBuffers::Admission admission = Come(from_right_, 100);
  EXPECT_TRUE(admission.is_kept);
  EXPECT_TRUE(admission.sends_xoff) << "3,100 B of 2,900 B";
  EXPECT_TRUE(admission.becomes_eventful);
  EXPECT_TRUE(admission.is_eventful);
  EXPECT_TRUE(buffers_.PauseOf(FirstChannelOf(from_right_)).is_xoff);
  EXPECT_FALSE(buffers_.PauseOf(FirstChannelOf(from_left_)).is_xoff);
}

TEST_F(SharedBuffersTest, HeadroomTakesWhatComesAfterThePauseAndNoMore) {
  AddLeaf(true);
  Come(from_left_, 3'000);
  Come(from_right_, 3'000);
  Come(from_right_, 100);
  EXPECT_TRUE(Come(from_right_, 1'000).is_kept);
  EXPECT_TRUE(Come(from_right_, 1'000).is_kept);
  EXPECT_FALSE(Come(from_right_, 1'000).is_kept) << "3,000 B of 2,500 B of headroom";
  EXPECT_EQ(PoolBytes(), 6'100);
  EXPECT_EQ(buffers_.PauseOf(FirstChannelOf(from_right_)).headroom_bytes, 2'000u);
  EXPECT_EQ(accounts_[FirstChannelOf(from_right_)].bytes, 5'100u);
  EXPECT_EQ(buffers_[buffers_.OfDevice(leaf_)].dropped_packets, 1u);
}

TEST_F(SharedBuffersTest, AnIngressGoesOnOnceItIsFarEnoughBelowItsShare) {
  AddLeaf(true);
  Come(from_left_, 3'000);
  Come(from_right_, 3'000);
  Come(from_right_, 100);
  Come(from_right_, 1'000);
  EXPECT_TRUE(Release().empty());
  Leave(3);  // out of the headroom first
  EXPECT_EQ(buffers_.PauseOf(FirstChannelOf(from_right_)).headroom_bytes, 0u);
  EXPECT_EQ(PoolBytes(), 6'100);
  EXPECT_TRUE(Release().empty()) << "3,100 B of 2,900 B";
  Leave(0);
  EXPECT_EQ(PoolBytes(), 3'100);
  EXPECT_EQ(Release(), (std::vector<VirtualChannelId>{FirstChannelOf(from_right_)}))
      << "3,100 B of 5,900 B";
  EXPECT_FALSE(buffers_.PauseOf(FirstChannelOf(from_right_)).is_xoff);
  EXPECT_FALSE(buffers_.IsEventful(buffers_.OfDevice(leaf_)));
}

TEST_F(SharedBuffersTest, APacketIsCountedOutOnce) {
  AddLeaf(true);
  Come(from_left_, 1'000);
  Leave(0);
  Leave(0);
  EXPECT_EQ(PoolBytes(), 0);
  EXPECT_EQ(accounts_[FirstChannelOf(from_left_)].bytes, 0u);
}

// With k packets queued, the next is above its share if 1,000 (k + 1) > 9,000 - 1,000 k.
TEST_F(SharedBuffersTest, ALossyQueueDropsAboveItsShare) {
  AddLeaf(false);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Come(from_left_, 1'000).is_kept) << i;
  EXPECT_FALSE(Come(from_left_, 1'000).is_kept);
  EXPECT_FALSE(Come(from_right_, 1'000).is_kept) << "the queue is what is full";
  EXPECT_EQ(buffers_[buffers_.OfDevice(leaf_)].dropped_packets, 2u);
  EXPECT_EQ(PoolBytes(), 5'000);
  Leave(0);
  EXPECT_TRUE(Come(from_right_, 1'000).is_kept);
}

TEST_F(SharedBuffersTest, SettlingCountsOutWhatHasDeparted) {
  AddLeaf(true);
  Come(from_left_, 1'000);
  Come(from_left_, 1'000);
  for (const PacketId index : there_) {
    Packet& packet = tables_.packets[index];
    tables_.SendInShortForm(index, packet, tables_.links[to_right_]);
  }
  engine().Register(
      event_order::kArrival, {.name = "arrivals"}, [](void*, uint32_t) {}, this);
  std::vector<int64_t> pool_bytes;
  for (const int64_t time_ps : {79'999, 80'000, 160'000}) {
    At(time_ps, [&] {
      buffers_.Settle(buffers_.OfDevice(leaf_));
      pool_bytes.push_back(PoolBytes());
    });
  }
  engine().Run();
  EXPECT_EQ(pool_bytes, (std::vector<int64_t>{2'000, 1'000, 0}));
}

// The calm bound is 4,500 B, half of which is for what goes on as ever.
TEST_F(SharedBuffersTest, APartitionThatLeavesItsShareIsNotIndependent) {
  AddLeaf(true);
  Come(from_left_, 1'000);
  ASSERT_TRUE(buffers_.BeginIndependent(leaf_, {}));
  ASSERT_TRUE(buffers_.BeginIndependent(leaf_, {}));
  EXPECT_NO_THROW(Come(from_left_, 1'250));
  EXPECT_THROW(Come(from_left_, 1), SharedBuffers::NotIndependent);
  EXPECT_FALSE(buffers_.BeginIndependent(leaf_, {}))
      << "the buffer is above half of 4,500 B by now";
  buffers_.EndIndependent(leaf_, {});
  EXPECT_THROW(Come(from_left_, 1), SharedBuffers::NotIndependent) << "another has not ended";
  buffers_.EndIndependent(leaf_, {});
  EXPECT_NO_THROW(Come(from_left_, 1));
  EXPECT_TRUE(buffers_.BeginIndependent(left_, {})) << "a NIC without a buffer shares none";
}

// The leaf has links to both sides.
TEST_F(SharedBuffersTest, SharesOfTheOtherHalfAreReservedOnce) {
  AddLeaf(true);
  const std::vector<LinkId> to_left = {graph_.ReverseLink(from_left_)};
  const std::vector<LinkId> from_left = {from_left_};
  ASSERT_TRUE(buffers_.BeginIndependent(leaf_, to_left));
  ASSERT_TRUE(buffers_.BeginIndependent(leaf_, to_left));
  EXPECT_FALSE(buffers_.BeginIndependent(leaf_, to_left)) << "the leaf has two links";
  EXPECT_TRUE(buffers_.BeginIndependent(leaf_, from_left)) << "it does not leave the device";
  buffers_.EndIndependent(leaf_, to_left);
  EXPECT_TRUE(buffers_.BeginIndependent(leaf_, to_left));
}

}  // namespace
}  // namespace railyard
