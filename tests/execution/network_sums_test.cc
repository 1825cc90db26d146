// SPDX-License-Identifier: GPL-2.0-only
// Sums of the network's switches alone: the test plays the lanes that stage operands and the
// proxies that post them.
#include "simulator/execution/sums/network_sums.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Rank r is GPU r, and ranks 0 and 8 are on one rail. A rank's connection leads to itself.
class NetworkSumsTest : public testing::ConnectionFixture {
 protected:
  static constexpr uint32_t kBytes = 3'000;  // of a slice

  NetworkSumsTest() : sums_(*aggregation_, *table_) {
    network_->SetSinkOf({PacketKind::kAggregateOperand, PacketKind::kAggregateResult},
                        *aggregation_);
    sink_.on_delivered = [this](ConnectionId id) { delivered_.push_back(id); };
  }

  static std::vector<LanePeer> OverNetwork(const std::vector<uint32_t>& ranks) {
    std::vector<LanePeer> peers;
    for (const uint32_t rank : ranks) {
      peers.push_back({.rank = RankIndex{rank}, .use = ConnectionUse::kNetworkSum});
    }
    return peers;
  }
  ConnectionId OfRank(uint32_t rank, uint32_t channel = 0) {
    return Between(rank, rank, channel, ConnectionUse::kNetworkSum);
  }
  // Returns the connections of a lane that sends operands to a tree over these ranks.
  static LaneConnections PeersIn(const std::vector<uint32_t>& ranks,
                                 const StepAggregation& aggregation = {}) {
    LaneConnections peers;
    peers.listed.send_to = OverNetwork(ranks);
    peers.aggregation = aggregation;
    return peers;
  }
  // Stages what a rank's lane has just moved into its next slot.
  void Stage(uint32_t rank, const LaneConnections& peers, uint64_t wire_bytes = kBytes,
             uint32_t channel = 0) {
    const ConnectionId id = OfRank(rank, channel);
    ++table_->slots(id).posted;
    sums_.Stage({.rank = RankIndex{rank}, .channel = channel}, peers, id, kBytes, wire_bytes);
  }
  // Returns the payload that a GPU's NIC has sent to its leaf.
  uint64_t SentByNicOf(uint32_t gpu) const {
    const LinkId up =
        aggregation_->LinksOf(At(table_->Find(CommunicatorIndex{0}, 0, RankIndex{gpu},
                                              RankIndex{gpu}, ConnectionUse::kNetworkSum))
                                  .flow)[1];
    return network_->CountersOfLink(up).payload_bytes;
  }

  NetworkSums sums_;
  std::vector<uint32_t> delivered_;
};

TEST_F(NetworkSumsTest, AStepThatNeitherGathersNorScattersIsASumOfAll) {
  const LanePeers listed{.recv_from = OverNetwork({0, 8}), .send_to = OverNetwork({0, 8})};
  const StepAggregation of =
      StepAggregationOf(listed, RankIndex{8}, {.bytes = kBytes, .reduce = true});
  EXPECT_EQ(of.operation.kind, Aggregation::Kind::kReduce);
  EXPECT_EQ(of.operation.blocks, 1u);
  EXPECT_EQ(of.own_bytes, 0u);
}

// The second one of four members owns the first of two blocks and the third one the other.
TEST_F(NetworkSumsTest, AGatheredBlockBelongsToItsOwnerAndTheNextOnesFollow) {
  const LanePeers listed{.recv_from = {{.rank = RankIndex{5}}},
                         .send_to = OverNetwork({3, 9, 4, 7})};
  const Step step{.bytes = kBytes, .pieces = 2, .gathers = true, .owner = 9};
  std::vector<uint32_t> own_bytes;
  for (const uint32_t rank : {3u, 9u, 4u, 7u}) {
    const StepAggregation of = StepAggregationOf(listed, RankIndex{rank}, step);
    EXPECT_EQ(of.operation.kind, Aggregation::Kind::kGather);
    EXPECT_EQ(of.operation.blocks, 2u);
    EXPECT_EQ(of.operation.owner, 1u) << "a place among the members, not a rank";
    own_bytes.push_back(of.own_bytes);
  }
  EXPECT_THAT(own_bytes, ElementsAre(0, kBytes / 2, kBytes / 2, 0));
}

// The results come from the network, and go on to a rank of the same server.
TEST_F(NetworkSumsTest, MembersAreThoseOfTheDirectionThatTheNetworkIsIn) {
  const LanePeers listed{.recv_from = OverNetwork({1, 9}), .send_to = {{.rank = RankIndex{2}}}};
  const Step step{.bytes = kBytes, .scatters = true, .owner = 9};
  const StepAggregation of = StepAggregationOf(listed, RankIndex{9}, step);
  EXPECT_EQ(of.operation.kind, Aggregation::Kind::kScatter);
  EXPECT_EQ(of.operation.owner, 1u);
  EXPECT_EQ(of.own_bytes, kBytes);
  EXPECT_EQ(StepAggregationOf(listed, RankIndex{1}, step).own_bytes, 0u);
}

// Rank 8 is the first that sends, and yet the second in the tree.
TEST_F(NetworkSumsTest, ARankJoinsItsTreeWithItsFirstOperandAtItsPlace) {
  LaneConnections peers = PeersIn({0, 8});
  peers.listed.send_to.insert(peers.listed.send_to.begin(), {.rank = RankIndex{1}});  // NVLink
  EXPECT_EQ(At(OfRank(8)).flow, FlowId::kNone);
  Stage(8, peers);
  const FlowId second = At(OfRank(8)).flow;
  Stage(0, peers);
  EXPECT_EQ(At(OfRank(0)).flow + 1, second);
  Stage(8, peers);
  EXPECT_EQ(At(OfRank(8)).flow, second);
  EXPECT_EQ(graph_.link_source(aggregation_->LinksOf(second)[0]), graph_.gpus()[8]);
}

TEST_F(NetworkSumsTest, ChannelsHaveTreesOfTheirOwn) {
  Stage(0, PeersIn({0, 8}));
  Stage(0, PeersIn({0, 8}), kBytes, 1);
  // The first tree has two members.
  EXPECT_EQ(At(OfRank(0, 1)).flow, At(OfRank(0)).flow + 2);
}

// The slices lie in slots 0 and 1; what is posted has the flags of the protocol.
TEST_F(NetworkSumsTest, OperandsAreStagedInTheirSlotsAndPostedFromThere) {
  constexpr uint64_t kWithFlags = uint64_t{2} * kBytes;
  for (const uint32_t rank : {0u, 8u}) {
    Stage(rank, PeersIn({0, 8}));
    Stage(rank, PeersIn({0, 8}), kWithFlags);
  }
  const Connection& connection = At(OfRank(8));
  EXPECT_EQ(table_->staged(connection).bytes[1], kBytes);
  EXPECT_EQ(table_->aggregations(connection)[0].bytes, kBytes);
  EXPECT_EQ(table_->aggregations(connection)[1].bytes, kWithFlags);
  EXPECT_EQ(table_->aggregations(connection)[2].bytes, 0u);

  for (const uint32_t rank : {0u, 8u}) sums_.Post(OfRank(rank), 1);
  engine().Run();
  EXPECT_THAT(delivered_, UnorderedElementsAre(OfRank(0), OfRank(8)));
  EXPECT_EQ(SentByNicOf(0), kWithFlags);
  EXPECT_EQ(SentByNicOf(8), kWithFlags);
}

TEST_F(NetworkSumsTest, AReductionSendsAndReceivesTheWholeSlice) {
  const LaneConnections peers = PeersIn({0, 8});
  Stage(0, peers, uint64_t{2} * kBytes);
  EXPECT_EQ(sums_.CountReceived(peers, OfRank(0), kBytes), kBytes);
  const Aggregated& aggregated = table_->aggregated(At(OfRank(0)));
  EXPECT_EQ(aggregated.reduced.sent, kBytes) << "flags of the protocol are not payload";
  EXPECT_EQ(aggregated.reduced.received, kBytes);
  EXPECT_EQ(aggregated.gathered.sent, 0u);
  EXPECT_EQ(aggregated.gathered.received, 0u);
}

TEST_F(NetworkSumsTest, AGatherSendsOnlyOwnBytesAndReceivesAll) {
  constexpr uint32_t kOwn = 1'000;
  const LaneConnections peers =
      PeersIn({0, 8}, {.operation = {.kind = Aggregation::Kind::kGather}, .own_bytes = kOwn});
  Stage(0, peers);
  EXPECT_EQ(sums_.CountReceived(peers, OfRank(0), kBytes), kBytes);
  const Aggregated& aggregated = table_->aggregated(At(OfRank(0)));
  EXPECT_EQ(aggregated.gathered.sent, kOwn);
  EXPECT_EQ(aggregated.gathered.received, kBytes);
  EXPECT_EQ(aggregated.reduced.sent + aggregated.reduced.received, 0u);
}

TEST_F(NetworkSumsTest, AScatterSendsAllAndReceivesOnlyOwnBytes) {
  constexpr uint32_t kOwn = 1'000;
  const LaneConnections peers =
      PeersIn({0, 8}, {.operation = {.kind = Aggregation::Kind::kScatter}, .own_bytes = kOwn});
  Stage(0, peers);
  EXPECT_EQ(sums_.CountReceived(peers, OfRank(0), kBytes), kOwn);
  const Aggregated& aggregated = table_->aggregated(At(OfRank(0)));
  EXPECT_EQ(aggregated.reduced.sent, kBytes);
  EXPECT_EQ(aggregated.reduced.received, kOwn);
  EXPECT_EQ(aggregated.gathered.sent + aggregated.gathered.received, 0u);
}

}  // namespace
}  // namespace railyard
