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

// --- In the middle of a collective ---------------------------------------------------------------

// A NIC fails in the middle of the first AllReduce; 131 us later its queue pairs know.
class NicFailoverInCollectiveTest : public NicFailoverTest {
 protected:
  static std::string Fails(const std::string& policy, double progress,
                           const std::string& bytes = "256MiB", uint32_t repeat = 1) {
    return "fabric { rail_optimized { servers: 2 nic_rate: \"200Gbps\" } }\n" +
           Program("ALL_REDUCE", bytes, fmt::format("repeat: {} compute_before: \"1ms\"", repeat)) +
           kFreeGpu + "nccl { CROSS_NIC: 0 IB_TIMEOUT: 5 IB_RETRY_CNT: 0 }\n" +
           (policy.empty() ? "" : fmt::format("nic_failover {{ policy: {} }}\n", policy)) +
           fmt::format(
               "faults {{ name: \"nic\" kind: LINK_DOWN device: \"server1/nic3\" when {{ number: "
               "1 progress: {} }} }}\n",
               progress);
  }
  static double Slower(const EndedRun& run, size_t collective) {
    return run.collectives.Real(collective, "duration_ps") /
           run.collectives.Real(collective, "baseline_duration_ps");
  }
};

TEST_F(NicFailoverInCollectiveTest, WithoutAPolicyItIsTheEndOfTheJob) {
  const EndedRun run = RunText(Fails("", 0.5, "16MiB"));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.nic_failovers"), 0);
}

// A ring of 16 GPUs puts 2 x 15/16 of its eighth on the wire. The data that was there when the
// NIC failed took its time at full rate; the rest goes at half of it where one NIC carries two
// NICs' data, and at 7/8 where seven carry eight NICs'.
TEST_F(NicFailoverInCollectiveTest, TheRestGoesAtTheRateOfTheNicsThatAreLeft) {
  constexpr double kBytesOfNic = (256 << 20) * (2.0 * 15 / 16) / 8;
  for (const auto& [policy, rate] : {std::pair("PXN", 1.0 / 2), std::pair("REPLAN", 7.0 / 8)}) {
    for (const double progress : {0.25, 0.5}) {
      SCOPED_TRACE(fmt::format("{} {}", policy, progress));
      const EndedRun run = RunText(Fails(policy, progress));
      ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
      const double done =
          static_cast<double>(run.links.Sum("payload_bytes", "link", "leaf3>server1/nic3")) /
          kBytesOfNic;
      EXPECT_NEAR(done, progress, 0.1);  // NVLinks are ahead of it
      EXPECT_NEAR(Slower(run, 0), done + (1 - done) / rate, 0.01);
      EXPECT_TRUE(run.At("conservation.ok").GetBool());
    }
  }
}

// Every contribution is taken once, whatever was sent again; what is begun later goes around the
// NIC from its start.
TEST_F(NicFailoverInCollectiveTest, WhatIsBegunLaterGoesAroundTheNic) {
  for (const char* policy : {"PXN", "REPLAN"}) {
    SCOPED_TRACE(policy);
    const EndedRun run = RunText(Fails(policy, 0.5, "4MiB", 40));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_GT(run.Integer("transport.nic_failovers"), 0);
    const EndedRun free = RunText(Fails("", 0.5, "4MiB", 40), {"--set", "faults=[]"});
    EXPECT_EQ(run.Integer("payload.total_bytes"), free.Integer("payload.total_bytes"));
    EXPECT_EQ(run.pairs.Sum("payload_bytes"), free.pairs.Sum("payload_bytes"));
    // 39 more AllReduces: all of the NIC's data, over one NIC or seven.
    const auto sent = [&](const EndedRun& of, const char* link) {
      return static_cast<double>(of.links.Sum("payload_bytes", "link", link));
    };
    const double nic = 40 * (4 << 20) * (2.0 * 15 / 16) / 8;
    const double lost_nics = nic - sent(run, "leaf3>server1/nic3");
    EXPECT_NEAR(sent(run, "leaf4>server1/nic4"),
                nic + lost_nics / (policy == std::string("PXN") ? 1 : 7), 0.02 * nic);
    EXPECT_NEAR(sent(run, "leaf5>server1/nic5"),
                nic + lost_nics / (policy == std::string("PXN") ? 1e9 : 7), 0.02 * nic);
  }
}

TEST_F(NicFailoverInCollectiveTest, WhatIsBegunLaterIsReplayedAsItIsSimulated) {
  const std::string text = Fails("PXN", 0.5, "256KiB", 40);
  const EndedRun run = RunText(text);
  EXPECT_GT(run.Integer("transport.nic_failovers"), 0);
  EXPECT_GT(run.Integer("collectives.replayed"), 0);
  EXPECT_EQ(RunText(text, {"--no-replay-cache"}).Text("fingerprint"), run.Text("fingerprint"));
}

// NICs that fail one after the other, of both servers: four of eight carry what eight did.
TEST_F(NicFailoverInCollectiveTest, OthersMayFailToo) {
  std::string text = Fails("REPLAN", 0.25, "64MiB", 2);
  for (const uint32_t nic : {4u, 5u, 0u}) {
    text += fmt::format(
        "faults {{ name: \"nic{}\" kind: LINK_DOWN device: \"server{}/nic{}\" when {{ begin_of: "
        "\"nic\" }} at: \"{}us\" }}\n",
        nic, nic % 2, nic, 100 * (nic + 1));
  }
  const EndedRun run = RunText(text);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GE(Slower(run, 1), 2);
  EXPECT_LT(Slower(run, 1), 2.3);  // rings take longer to fill as well
  for (const uint32_t nic : {0u, 3u, 4u, 5u}) {
    const std::string link = fmt::format("leaf{}>server1/nic{}", nic, nic);
    EXPECT_LT(run.links.Sum("payload_bytes", "link", link),
              run.links.Sum("payload_bytes", "link", "leaf6>server1/nic6") / 2);
  }
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// No NIC is left to a server of one: the error is the job's.
TEST_F(NicFailoverInCollectiveTest, WithoutAnotherNicTheJobIsAborted) {
  const EndedRun run = RunText(
      "fabric { leaf_spine { servers { count: 2 gpus: 1 } nics_per_leaf: 1 spines: 1 } }\n" +
      Program("ALL_REDUCE", "16MiB") +
      "nccl { IB_TIMEOUT: 6 IB_RETRY_CNT: 1 }\nnic_failover { policy: PXN }\n" +
      "faults { name: \"nic\" kind: LINK_DOWN device: \"server1/nic0\" at: \"100us\" }\n");
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_THAT(run.exit.output, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
}

// NICs work, the fabric between them does not.
TEST_F(NicFailoverInCollectiveTest, AFabricThatFailsIsNoNicThatDoes) {
  const EndedRun run = RunText(
      "fabric { leaf_spine { servers { count: 2 gpus: 4 } nics_per_leaf: 4 spines: 1 } }\n" +
      Program("ALL_REDUCE", "16MiB") +
      "nccl { IB_TIMEOUT: 6 IB_RETRY_CNT: 1 }\nnic_failover { policy: REPLAN }\n" +
      LinkDown("leaf0--spine0", "100us"));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.nic_failovers"), 0);
}

}  // namespace
}  // namespace railyard::testing
