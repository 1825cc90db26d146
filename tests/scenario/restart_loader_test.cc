// SPDX-License-Identifier: GPL-2.0-only
// `restart` and `nic_failover`: what they are read as, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRounds =
    "workload { program { repeat: 10 collectives { kind: ALL_REDUCE bytes: \"1MiB\" "
    "compute_before: "
    "\"1s\" } } algorithm: RING protocol: SIMPLE }\n";

std::string FindingsOf(const std::string& lines, const std::string& workload = kRounds) {
  return LoadedScenario(std::string(kFabric) + workload + lines).findings;
}

TEST(RestartLoaderTest, CheckpointsAreTimeBeforeTheRoundsTheyPrecede) {
  const LoadedScenario loaded(std::string(kFabric) + kRounds +
                              "restart { checkpoint_every: 4 save: \"2s\" load: \"3s\" requeue: "
                              "\"5s\" detection: WATCHDOG restarts_max: 7 }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const RestartSettings& restart = loaded.scenario->restart;
  EXPECT_TRUE(restart.restarts);
  EXPECT_EQ(restart.rounds, 10u);
  EXPECT_EQ(restart.load_ps, 3 * kPsPerSecond);
  EXPECT_EQ(restart.requeue_ps, 5 * kPsPerSecond);
  EXPECT_EQ(restart.detection, RestartSettings::Detection::kWatchdog);
  EXPECT_EQ(restart.restarts_max, 7u);
  for (uint32_t round = 0; round < 10; ++round) {
    const bool is_after_save = round == 4 || round == 8;
    EXPECT_EQ(loaded.scenario->job.operations[0][round].compute_before_ps,
              (is_after_save ? 3 : 1) * kPsPerSecond);
  }
}

TEST(RestartLoaderTest, WhatItCannotDoIsRefused) {
  EXPECT_EQ(FindingsOf("restart { save: \"1s\" }"),
            ":3:11: error: restart.save: has no effect without checkpoint_every\n");
  EXPECT_EQ(
      FindingsOf("restart { checkpoint_every: 10 }"),
      ":3:11: error: restart.checkpoint_every: 10 is beyond the program's last round (expected "
      "less than its repeat, 10)\n");
  EXPECT_EQ(FindingsOf("restart { requeue: \"25h\" }"),
            ":3:11: error: restart.requeue: \"25h\" is out of range (expected at most 24 h)\n");
  EXPECT_THAT(
      FindingsOf("restart {}\nfaults { kind: BACKGROUND_LOAD at: \"0s\" load { from: "
                 "\"server0/gpu0\" to: \"server1/gpu0\" rate: \"1Gbps\" message: \"1MiB\" } }"),
      HasSubstr("faults[0].kind: BACKGROUND_LOAD cannot go on over a restart (expected "
                "another kind, or no restart)"));
  EXPECT_THAT(
      FindingsOf("restart {}\nfaults { kind: LINK_DOWN link: \"server0/nic0\" when { number: 1 "
                 "} }"),
      HasSubstr("when.number: names a collective that a restart may repeat (expected a "
                "time)"));
  EXPECT_THAT(FindingsOf("restart {}", "workload { inline_plan {} }\n"), HasSubstr("error"));
  EXPECT_THAT(
      FindingsOf("restart {}",
                 "workload { operations_max: 1 program { collectives { kind: ALL_REDUCE "
                 "bytes: \"1MiB\" } } }\n"),
      HasSubstr("restart: needs the rounds of a program (expected workload.program, and all "
                "of it)"));
}

constexpr const char* kFailover = "nic_failover { unusable: \"server1/nic3\" policy: REPLAN }\n";

TEST(NicFailoverLoaderTest, NamesNics) {
  const LoadedScenario loaded(std::string(kFabric) + kRounds +
                              "nic_failover { unusable: \"server1/nic3\" unusable: \"*/nic5\" "
                              "policy: PXN }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_THAT(loaded.scenario->nccl.unusable_nics,
              ::testing::ElementsAre(NicPlace{1, 3}, NicPlace{0, 5}, NicPlace{1, 5}));
  EXPECT_EQ(loaded.scenario->nccl.nic_policy, NicPolicy::kPxn);
}

TEST(NicFailoverLoaderTest, WhatItCannotDoIsRefused) {
  EXPECT_EQ(FindingsOf("nic_failover { unusable: \"server9/nic3\" policy: PXN }"),
            ":3:16: error: nic_failover.unusable[0]: \"server9/nic3\" is no NIC of a GPU (expected "
            "e.g. \"server1/nic3\")\n");
  const std::string missing = FindingsOf("nic_failover {}");
  EXPECT_THAT(missing, HasSubstr("nic_failover.policy: missing (expected PXN or REPLAN)"));
  EXPECT_THAT(missing, HasSubstr("nic_failover.unusable: missing (expected NICs"));
  EXPECT_THAT(FindingsOf("nic_failover { unusable: \"server1/nic*\" policy: PXN }"),
              HasSubstr("leaves a server without a NIC (expected one in each)"));
  EXPECT_THAT(FindingsOf("nic_failover { unusable: \"server1/nic*\" policy: REPLAN }"),
              HasSubstr("leaves no rail whole (expected one that has its NIC in every server)"));
  EXPECT_THAT(FindingsOf(std::string(kFailover) + "nccl { PXN_DISABLE: true }"),
              HasSubstr("policy: needs PXN (expected nccl.PXN_DISABLE: false)"));
  const char* const rings_only = "policy: is of rings alone (expected workload.algorithm: RING";
  EXPECT_THAT(FindingsOf(kFailover,
                         "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } "
                         "}\n"),
              HasSubstr(rings_only));
  EXPECT_THAT(
      FindingsOf(kFailover,
                 "workload { algorithm: RING protocol: SIMPLE program { collectives { kind: "
                 "ALL_TO_ALL bytes: \"1MiB\" } } }\n"),
      HasSubstr(rings_only));
  EXPECT_THAT(
      FindingsOf(kFailover,
                 "workload { algorithm: RING protocol: SIMPLE program { collectives { kind: "
                 "ALL_REDUCE bytes: \"1MiB\" stride: 8 } } }\n"),
      HasSubstr("does not know communicator \"stride8/0\" of some GPUs of several servers"));
}

}  // namespace
}  // namespace railyard
