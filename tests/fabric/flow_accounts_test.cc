// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/flow_accounts.h"

#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fabric/tables_fixture.h"

namespace railyard {
namespace {

class FlowAccountsTest : public testing::TablesFixture {
 protected:
  FlowAccounts flows_{tables_};
};

TEST_F(FlowAccountsTest, BytesAreInFlightUntilTheyAreDeliveredOrReduced) {
  flows_.CountInjected(1'000);
  flows_.CountReplicated(500);
  EXPECT_EQ(flows_.bytes_in_flight(), 1'500u);
  flows_.CountReduced(300);
  flows_.CountDelivered(1'100);
  EXPECT_EQ(flows_.bytes_in_flight(), 100u);
  EXPECT_EQ(tables_.counters.injected_bytes, 1'000u);
  EXPECT_EQ(tables_.counters.replicated_bytes, 500u);
  EXPECT_EQ(tables_.counters.reduced_bytes, 300u);
  EXPECT_EQ(tables_.counters.delivered_bytes, 1'100u);
}

TEST_F(FlowAccountsTest, LinksCountThemLikePackets) {
  flows_.CountOnLink(from_left_, 900, 1'000);
  flows_.CountOnLink(from_left_, 90, 100);
  EXPECT_EQ(tables_.links[from_left_].payload_bytes, 990u);
  EXPECT_EQ(tables_.links[from_left_].wire_bytes, 1'100u);
  EXPECT_EQ(tables_.links[to_left_].wire_bytes, 0u);
}

TEST_F(FlowAccountsTest, TheOwnerOfFlowsSettlesThemAndLearnsOfRates) {
  flows_.Settle();
  flows_.OnRateChanged(from_left_, kRateBps);  // without effect: there are no flows
  int settled = 0;
  std::pair<LinkId, uint64_t> changed{to_left_, 0};
  flows_.SetLedger({.settle = [&] { ++settled; },
                    .set_rate =
                        [&](LinkId link, uint64_t rate_bps) {
                          changed = {link, rate_bps};
                        }});
  flows_.Settle();
  flows_.OnRateChanged(from_left_, kRateBps / 2);
  EXPECT_EQ(settled, 1);
  EXPECT_EQ(changed, std::pair(from_left_, kRateBps / 2));
}

}  // namespace
}  // namespace railyard
