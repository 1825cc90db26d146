// SPDX-License-Identifier: GPL-2.0-only
// NICs that differ: which, in what, and what is refused.
#include "simulator/scenario/models/nics_loader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"
#include "tests/support/gpus.h"
#include "workloads/layout/fabric_layout.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::Gpus;

uint64_t RateOfCable(const Scenario& scenario, const std::string& name) {
  const Cable& cable = scenario.fabric.cables()[scenario.fabric.FindCable(name).value()];
  EXPECT_EQ(scenario.fabric.link(cable.forward).rate_bps,
            scenario.fabric.link(cable.backward).rate_bps);
  return scenario.fabric.link(cable.forward).rate_bps;
}

TEST(NicsLoaderTest, WhatIsStatedDiffersAndTheRestIsAsEverywhere) {
  const auto scenario = LoadBeside(
      "nccl { IB_TIMEOUT: 17 IB_RETRY_CNT: 6 }\n"
      "nic { window: \"256KiB\" ack_every_packets: 2 }\n"
      "nics { device: [\"server0/nic3\", \"server1/nic3\"] IB_TIMEOUT: 14 nic { window: \"1MiB\" } "
      "}\n"
      "nics { device: \"*/nic5\" nic { cnp_interval: \"20us\" congestion_control { dcqcn {} } } "
      "IB_RETRY_CNT: 2 }\n");
  ASSERT_NE(scenario, nullptr);
  ASSERT_EQ(scenario->stack.nic_variants.size(), 2u);
  const auto names_of = [&](const NicVariant& variant) {
    std::vector<std::string> names;
    for (const DeviceId nic : variant.nics) names.push_back(scenario->fabric.device(nic).name);
    return names;
  };
  const NicVariant& first = scenario->stack.nic_variants[0];
  EXPECT_THAT(names_of(first), ElementsAre("server0/nic3", "server1/nic3"));
  EXPECT_EQ(first.settings.ib_timeout, 14u);
  EXPECT_EQ(first.settings.ib_retry_cnt, 6u);
  EXPECT_EQ(first.settings.window_bytes, 1u << 20);
  EXPECT_EQ(first.settings.ack_every_packets, 2u);
  EXPECT_FALSE(first.settings.congestion_control.IsTypeIdSet() &&
               first.settings.congestion_control.GetTypeId().GetName() == "railyard::Dcqcn");
  const NicVariant& second = scenario->stack.nic_variants[1];
  EXPECT_THAT(names_of(second), ElementsAre("server0/nic5", "server1/nic5"));
  EXPECT_EQ(second.settings.ib_timeout, 17u);
  EXPECT_EQ(second.settings.ib_retry_cnt, 2u);
  EXPECT_EQ(second.settings.window_bytes, 256u << 10);
  EXPECT_EQ(second.settings.cnp_interval_ps, 20 * kPsPerUs);
  EXPECT_EQ(second.settings.congestion_control.GetTypeId().GetName(), "railyard::Dcqcn");
  EXPECT_EQ(scenario->stack.nic.ib_timeout, 17u);
}

// Ranks of NCCL agree on the lowest bandwidth between servers that any of them has.
TEST(NicsLoaderTest, ARateIsThatOfTheCableAndTheSlowestCounts) {
  const auto scenario = LoadBeside("nics { device: \"server1/nic3\" rate: \"200Gbps\" }\n");
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(RateOfCable(*scenario, "server1/nic3--leaf3"), 200'000'000'000u);
  EXPECT_EQ(RateOfCable(*scenario, "server0/nic3--leaf3"), 400'000'000'000u);
  EXPECT_TRUE(scenario->stack.nic_variants.empty());
  EXPECT_EQ(LayoutOf(scenario->fabric, Gpus({3, 11})).nic_bps, 200'000'000'000u);
  EXPECT_EQ(LayoutOf(scenario->fabric, Gpus({2, 10})).nic_bps, 400'000'000'000u);
}

TEST(NicsLoaderTest, EveryMistakeIsLocated) {
  EXPECT_EQ(FindingsBeside("nics { device: \"server9/nic*\" rate: \"200Gbps\" }\n"),
            ":3:8: error: nics[0].device[0]: \"server9/nic*\" is no NIC (expected e.g. "
            "\"server1/nic3\" or \"*/nic3\")\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"server1/nic3\" rate: \"200Gbps\" }\n"
                           "nics { device: \"*/nic3\" IB_TIMEOUT: 14 }\n"),
            ":4:8: error: nics[1].device[0]: \"server1/nic3\" differs already (expected each NIC "
            "once)\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"*/nic3\" rate: \"800Gbps\" }\n"),
            ":3:25: error: nics[0].rate: 800 Gb/s is more than server0/nic3--leaf3 has (expected "
            "at most 400 Gb/s)\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"*/nic3\" rate: \"0bps\" }\n"),
            ":3:25: error: nics[0].rate: is too low (expected at least 0.001 Gb/s)\n");
  EXPECT_EQ(FindingsBeside("nics { rate: \"200Gbps\" }\n"),
            ":3:1: error: nics[0].device: missing (expected NICs, e.g. \"server1/nic3\" or "
            "\"*/nic3\")\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"*/nic3\" }\n"),
            ":3:1: error: nics[0].nic: missing (expected what differs: rate, nic, IB_TIMEOUT or "
            "IB_RETRY_CNT)\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"*/nic3\" IB_TIMEOUT: 0 }\n"),
            ":3:25: error: nics[0].IB_TIMEOUT: 0 is no time-out at all, a lost packet would be "
            "waited for without end (expected 1 to 31: 4.096 us x 2^N)\n");
  EXPECT_EQ(FindingsBeside("nics { device: \"*/nic3\" nic { mtu_bytes: 1024 } }\n"),
            ":3:31: error: nics[0].nic.mtu_bytes: is of both ends of a queue pair, and so of all "
            "NICs (expected it in `nic`)\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" }\n"
                           "nics { device: \"*/nic3\" IB_TIMEOUT: 14 }\n"),
            ":4:25: error: nics[0].IB_TIMEOUT: is of RDMA (with TCP sockets NICs differ in their "
            "rate alone)\n");
}

}  // namespace
}  // namespace railyard
