// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/connections/connection_table.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/execution/connections/ties.h"
#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ConnectionId kNone = ConnectionId::kNone;

using ConnectionTableTest = testing::ConnectionFixture;

TEST_F(ConnectionTableTest, AConnectionIsOpenedOnceForItsChannelRanksAndUse) {
  EXPECT_EQ(table_->Find(CommunicatorIndex{0}, 0, RankIndex{1}, RankIndex{2}, ConnectionUse::kRing),
            kNone);
  const ConnectionId id = Between(1, 2);
  EXPECT_EQ(Between(1, 2), id);
  EXPECT_EQ(table_->Find(CommunicatorIndex{0}, 0, RankIndex{1}, RankIndex{2}, ConnectionUse::kRing),
            id);
  EXPECT_NE(Between(2, 1), id);
  EXPECT_NE(Between(1, 2, 1), id);
  EXPECT_THAT(table_->connections(), SizeIs(3));
}

TEST_F(ConnectionTableTest, OnlyWhatLeavesItsServerGoesOverTheStack) {
  EXPECT_EQ(At(Between(1, 2)).carrier, ConnectionCarrier::kStores);
  EXPECT_EQ(At(Between(1, 2)).transport, nullptr);
  const ConnectionId between_servers = Between(1, 9);
  EXPECT_EQ(At(between_servers).carrier, ConnectionCarrier::kTransport);
  EXPECT_EQ(At(between_servers).transport, &stack_->Plain());
  EXPECT_THAT(table_->LinksOf(At(between_servers)), IsEmpty());  // this transport crosses none
}

// Over NVLink: up to an NVSwitch and down, in equal shares over the four planes.
TEST_F(ConnectionTableTest, StoresCrossTwoLinksOfEachPlane) {
  const Connection& connection = At(Between(1, 2));
  const std::vector<LinkId> links = table_->LinksOf(connection);
  ASSERT_THAT(links, SizeIs(2));
  EXPECT_EQ(graph_.link_source(links[0]), graph_.gpus()[1]);
  EXPECT_EQ(graph_.link_target(links[1]), graph_.gpus()[2]);
  double shares = 0;
  for (const LinkShare& part : table_->LinkSharesOf(connection)) shares += part.share;
  EXPECT_DOUBLE_EQ(shares, 2);
}

// Equal servers order their connections equally; only the server distinguishes ties.
TEST_F(ConnectionTableTest, TiesOfLikeConnectionsDifferByTheirServerAlone) {
  const uint64_t first = At(Between(1, 2)).tie;
  const uint64_t second = At(Between(9, 10)).tie;
  EXPECT_NE(first, second);
  EXPECT_EQ(first & kLocalTieMask, second & kLocalTieMask);
}

TEST_F(ConnectionTableTest, AClosedConnectionKeepsItsNumberAndIsOpenedAnew) {
  const ConnectionId id = Between(1, 9);
  const uint64_t version = table_->network_version();
  EXPECT_THAT(table_->Close(PartIndex{2}), IsEmpty());  // another part of the job
  EXPECT_THAT(table_->Close(PartIndex{3}), ElementsAre(id));
  EXPECT_TRUE(table_->IsClosed(id));
  EXPECT_NE(table_->network_version(), version);
  EXPECT_EQ(Between(1, 9), ConnectionId{id + 1});
}

TEST_F(ConnectionTableTest, ADetourIsAskedForBeforeTheStackOpensAConnection) {
  std::vector<ConnectionId> asked;
  table_->SetDetours([&](ConnectionId connection) {
    asked.push_back(connection);
    table_->MoveTo(connection, stack_->Plain(), FlowId{77});
    return true;
  });
  Between(1, 2);
  const ConnectionId id = Between(1, 9);
  EXPECT_THAT(asked, ElementsAre(id));
  EXPECT_TRUE(At(id).is_detoured);
  EXPECT_EQ(At(id).flow, 77u);
}

// A channel with messages that nobody has taken is not at rest.
TEST_F(ConnectionTableTest, OnlyConnectionsWithoutMessagesAreQuiescent) {
  const ConnectionId id = Between(1, 2);
  StateArchive empty(0);
  table_->Visit(empty);
  EXPECT_TRUE(empty.is_quiescent());
  ++table_->slots(id).posted;
  StateArchive with_message(0);
  table_->Visit(with_message);
  EXPECT_FALSE(with_message.is_quiescent());
}

}  // namespace
}  // namespace railyard
