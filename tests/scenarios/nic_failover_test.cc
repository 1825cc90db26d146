// SPDX-License-Identifier: GPL-2.0-only
// A NIC that does not work: its ring over a neighbour's, or seven rails that share all data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class NicFailoverTest : public ProgramTest {
 protected:
  // Rings enter and leave by one rail in all runs; what a GPU does costs nothing.
  static std::string Job(const std::string& more) {
    return "fabric { rail_optimized { servers: 2 nic_rate: \"200Gbps\" } }\n" +
           Program("ALL_REDUCE", "256MiB") + kFreeGpu + "nccl { CROSS_NIC: 0 }\n" + more;
  }
  static std::string Failover(const std::string& policy) {
    // It is down, so nothing that crosses it would arrive.
    return fmt::format("nic_failover {{ unusable: \"server1/nic3\" policy: {} }}\n", policy) +
           LinkDown("server1/nic3--leaf3", "0s");
  }
  static int64_t PacketsOf(const EndedRun& run, const std::string& link) {
    return run.links.Sum("packets", "link", link);
  }
};

// One NIC carries what two did: all wait for it. Seven NICs carry what eight did.
TEST_F(NicFailoverTest, ANeighbourHalvesTheRingAndAllTheOthersLoseAnEighth) {
  const EndedRun whole = RunText(Job(""));
  const EndedRun pxn = RunText(Job(Failover("PXN")), {"--no-baseline"});
  const EndedRun replan = RunText(Job(Failover("REPLAN")), {"--no-baseline"});
  ASSERT_EQ(whole.exit.status, 0) << whole.exit.errors;
  ASSERT_EQ(pxn.exit.status, 0) << pxn.exit.errors;
  ASSERT_EQ(replan.exit.status, 0) << replan.exit.errors;
  const double busbw = whole.collectives.Real(0, "busbw_GBps");
  // NICs are what is slowest: eight of 25 GB/s, less headers.
  EXPECT_GT(busbw, 190);
  EXPECT_LT(busbw, 200);
  EXPECT_NEAR(pxn.collectives.Real(0, "busbw_GBps") / busbw, 1.0 / 2, 0.01);
  EXPECT_NEAR(replan.collectives.Real(0, "busbw_GBps") / busbw, 7.0 / 8, 0.01);
  // The bytes say the same: a neighbour twice as many, or each an eighth of an eighth more.
  const auto sent = [](const EndedRun& run, const std::string& nic) {
    return static_cast<double>(
        run.links.Sum("payload_bytes", "link", fmt::format("{}>leaf{}", nic, nic.back())));
  };
  const double usual = sent(whole, "server1/nic4");
  EXPECT_NEAR(sent(pxn, "server1/nic4") / usual, 2, 0.001);
  EXPECT_NEAR(sent(pxn, "server1/nic5") / usual, 1, 0.001);
  EXPECT_NEAR(sent(replan, "server1/nic4") / usual, 8.0 / 7, 0.001);
  EXPECT_NEAR(sent(replan, "server0/nic0") / usual, 8.0 / 7, 0.001);
  for (const EndedRun* run : {&pxn, &replan}) {
    EXPECT_EQ(PacketsOf(*run, "server1/nic3>leaf3"), 0);
    EXPECT_EQ(PacketsOf(*run, "leaf3>server1/nic3"), 0);
    EXPECT_TRUE(run->Drops().empty());
    EXPECT_TRUE(run->At("conservation.ok").GetBool());
  }
  // With PXN the other server still uses its third NIC, with REPLAN nobody uses that rail.
  EXPECT_GT(PacketsOf(pxn, "server0/nic3>leaf3"), 0);
  EXPECT_EQ(PacketsOf(replan, "server0/nic3>leaf3"), 0);
}

}  // namespace
}  // namespace railyard::testing
