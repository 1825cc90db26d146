// SPDX-License-Identifier: GPL-2.0-only
// The ledger of pairs alone: the test opens connections and says what their receivers have taken.
// Rank r is on GPU r, and GPU 8 is the first of the second server.
#include "simulator/run/pair_ledger.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/stacks/network_stacks.h"
#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Matcher;

class PairLedgerTest : public testing::ConnectionFixture {
 protected:
  PairLedgerTest() : ConnectionFixture(MakeNetworkStack) {}

  // The receiver has taken so many bytes of a connection.
  ConnectionId Take(uint32_t from, uint32_t to, ConnectionUse use, uint64_t bytes,
                    uint32_t channel = 0) {
    const ConnectionId id = Between(from, to, channel, use);
    table_->taken_bytes(id) += bytes;
    return id;
  }
  RunResult Record() const {
    RunResult result;
    PairLedger(graph_, *table_).Record(result);
    return result;
  }
  static Matcher<PairResult> Row(uint32_t from, uint32_t to, const char* tiers, uint64_t bytes) {
    return AllOf(Field(&PairResult::source_gpu, from), Field(&PairResult::destination_gpu, to),
                 Field(&PairResult::tiers, tiers), Field(&PairResult::payload_bytes, bytes));
  }
  static Matcher<InNetworkResult> BySwitch(uint32_t gpu, const char* operation, uint64_t sent,
                                           uint64_t received) {
    return AllOf(Field(&InNetworkResult::gpu, gpu), Field(&InNetworkResult::switches, "NVSWITCH"),
                 Field(&InNetworkResult::operation, operation),
                 Field(&InNetworkResult::tiers, "NVLINK"),
                 Field(&InNetworkResult::sent_bytes, sent),
                 Field(&InNetworkResult::received_bytes, received));
  }
};

// NICs of one rail share a leaf, others are joined by a spine. kExchange uses the sender's own NIC.
TEST_F(PairLedgerTest, PayloadCountsByHowFarItGoes) {
  Take(0, 1, ConnectionUse::kRing, 1);
  Take(0, 8, ConnectionUse::kExchange, 20);
  Take(0, 9, ConnectionUse::kExchange, 300);
  Take(1, 0, ConnectionUse::kRing, 0);
  const RunResult result = Record();
  EXPECT_THAT(result.pairs, ElementsAre(Row(0, 1, "NVLINK", 1), Row(0, 8, "HOST+NIC_LEAF", 20),
                                        Row(0, 9, "HOST+NIC_LEAF+LEAF_SPINE", 300)));
  EXPECT_EQ(result.payload_bytes, 321u);
  EXPECT_EQ(result.payload_left_server_bytes, 320u);
  EXPECT_EQ(result.payload_reached_spine_bytes, 300u);
  EXPECT_THAT(result.in_network, IsEmpty());
}

// The GPU of the receiver's rail relays one connection, and the other two cross a spine.
TEST_F(PairLedgerTest, APairHasOneRowWithItsBusiestWayFirst) {
  const ConnectionId relayed = Take(0, 9, ConnectionUse::kPointToPoint, 300);
  ASSERT_TRUE(At(relayed).is_relayed());
  Take(0, 9, ConnectionUse::kExchange, 100);
  Take(0, 9, ConnectionUse::kExchange, 100, 1);
  EXPECT_THAT(Record().pairs,
              ElementsAre(Row(0, 9, "NVLINK+HOST+NIC_LEAF|HOST+NIC_LEAF+LEAF_SPINE", 500)));
  Take(0, 9, ConnectionUse::kExchange, 100, 1);
  EXPECT_THAT(Record().pairs,
              ElementsAre(Row(0, 9, "HOST+NIC_LEAF+LEAF_SPINE|NVLINK+HOST+NIC_LEAF", 600)))
      << "of equal ones the first by name";
}

// GPU 0 has the operands of three GPUs added up, its own among them, and gets one sum.
TEST_F(PairLedgerTest, AnNvSwitchTakesEveryOperandAndReturnsOneSum) {
  constexpr uint64_t kBytes = 1'000;
  for (const uint32_t gpu : {0u, 1u, 2u}) Take(gpu, 0, ConnectionUse::kSwitchOperand, kBytes);
  const RunResult result = Record();
  EXPECT_THAT(result.in_network,
              ElementsAre(BySwitch(0, "REDUCE", kBytes, kBytes), BySwitch(1, "REDUCE", kBytes, 0),
                          BySwitch(2, "REDUCE", kBytes, 0)));
  EXPECT_THAT(result.pairs, ElementsAre(Row(1, 0, "NVLINK", kBytes), Row(2, 0, "NVLINK", kBytes)));
  EXPECT_EQ(result.payload_bytes, 2 * kBytes) << "what a GPU sends itself is no transfer";
  EXPECT_EQ(result.payload_left_server_bytes, 0u);
}

// GPU 0 sends once, and three GPUs get copies, itself among them.
TEST_F(PairLedgerTest, AnNvSwitchTakesOneStoreAndCopiesItToEvery) {
  constexpr uint64_t kBytes = 1'000;
  for (const uint32_t gpu : {0u, 1u, 2u}) Take(0, gpu, ConnectionUse::kSwitchResult, kBytes);
  const RunResult result = Record();
  EXPECT_THAT(result.in_network, ElementsAre(BySwitch(0, "MULTICAST", kBytes, kBytes),
                                             BySwitch(1, "MULTICAST", 0, kBytes),
                                             BySwitch(2, "MULTICAST", 0, kBytes)));
  EXPECT_THAT(result.pairs, ElementsAre(Row(0, 1, "NVLINK", kBytes), Row(0, 2, "NVLINK", kBytes)));
}

// A rank has had 700 B reduced on two channels, and 40 B gathered on one of them.
TEST_F(PairLedgerTest, WhatTheNetworksSwitchesAddUpHasNoPair) {
  const std::vector<GpuIndex> gpus = {GpuIndex{0}, GpuIndex{9}};
  for (const uint32_t channel : {0u, 1u}) {
    const ConnectionId id = Take(9, 9, ConnectionUse::kNetworkSum, 500, channel);
    table_->JoinTree(id, channel, RankIndex{0}, gpus, 1);
    table_->aggregated(At(id)).reduced = {.sent = 350, .received = 400};
    if (channel == 1) table_->aggregated(At(id)).gathered = {.sent = 40, .received = 200};
  }
  const RunResult result = Record();
  EXPECT_THAT(result.pairs, IsEmpty());
  EXPECT_EQ(result.payload_bytes, 1'000u);
  EXPECT_EQ(result.payload_left_server_bytes, 1'000u);
  EXPECT_EQ(result.payload_reached_spine_bytes, 1'000u) << "the root is GPU 0's leaf";
  const auto row = [](const char* operation, uint64_t sent, uint64_t received) {
    return AllOf(Field(&InNetworkResult::gpu, 9u), Field(&InNetworkResult::switches, "NETWORK"),
                 Field(&InNetworkResult::operation, operation),
                 Field(&InNetworkResult::tiers, "HOST+NIC_LEAF+LEAF_SPINE"),
                 Field(&InNetworkResult::sent_bytes, sent),
                 Field(&InNetworkResult::received_bytes, received));
  };
  EXPECT_THAT(result.in_network, ElementsAre(row("MULTICAST", 40, 200), row("REDUCE", 700, 800)));
}

}  // namespace
}  // namespace railyard
