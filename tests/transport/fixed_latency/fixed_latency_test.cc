// SPDX-License-Identifier: GPL-2.0-only
// The contract of transports, by one that ships with no program: a run uses it once it has a name.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/run/run_scenario.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "tests/scenario/loaded_scenario.h"
#include "tests/transport/fixed_latency/fixed_latency_stack.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRateBps = 100'000'000'000;
constexpr int64_t kLatencyPs = 100 * kPsPerUs;

void Register(const std::string& name, bool shows_state) {
  RegisterNetworkStack(
      name, [shows_state](const NetworkStackParts& parts, const NetworkStackSettings&) {
        return std::make_unique<FixedLatencyStack>(parts.network.engine(), kLatencyPs, kRateBps,
                                                   shows_state, &parts.network);
      });
}

class FixedLatencyTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Register("fixed", true);
    Register("fixed_without_state", false);
  }
};

// Two servers of one GPU, so that all goes over the transport; a proxy takes 1 us to see a message
// arrive, and GPUs take nothing. `calls` AllReduces of 64 KiB, 1 ms apart.
RunResult RunOver(const std::string& transport, uint32_t calls, ReplayCacheMode cache) {
  LoadedScenario loaded(fmt::format(
      "fabric {{ rail_optimized {{ servers: 2 gpus_per_server: 1 }} }}\n"
      "gpu {{ launch_latency: \"0s\" network_step_latency: \"0s\" proxy_post_latency: \"0s\" "
      "proxy_arrival_latency: \"1us\" channel_rate: \"1000Tbps\" }}\n"
      "transport: \"{}\"\nnccl {{ MAX_NCHANNELS: 1 }}\n"
      "workload {{ program {{ collectives {{ kind: ALL_REDUCE bytes: \"64KiB\" repeat: {} }} }} "
      "algorithm: RING protocol: SIMPLE }}\n",
      transport, calls));
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  Scenario& scenario = *loaded.scenario;
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (JobOperation& operation : scenario.job.operations[rank]) {
      operation.compute_before_ps = kPsPerMs;
    }
  }
  return RunScenario(scenario, {.replay_cache = cache});
}

// A ring of two takes two steps of half of the bytes, in two slices each. The first begins when a
// clear-to-send has come, and each takes a latency and two arrivals that a proxy sees.
TEST_F(FixedLatencyTest, AnAllReduceTakesThreeLatenciesAndItsBytesAtTheRate) {
  const RunResult result = RunOver("fixed", 1, ReplayCacheMode::kOff);
  ASSERT_EQ(result.collectives.size(), 1u);
  const int64_t bytes_ps = TransferTimePs(64 << 10, kRateBps);
  EXPECT_NEAR(static_cast<double>(result.collectives[0].duration_ps()),
              static_cast<double>(3 * kLatencyPs + 4 * kPsPerUs + bytes_ps), 1e5);
}

TEST_F(FixedLatencyTest, AResultSaysThatMessagesWereNoPackets) {
  const RunResult result = RunOver("fixed", 1, ReplayCacheMode::kOff);
  EXPECT_EQ(result.packets, 0u);
  EXPECT_THAT(result.notes,
              ::testing::Contains("Transport \"fixed\" sends no packets: messages between servers "
                                  "do not cross the fabric's links."));
  EXPECT_THAT(RunOver("rdma", 1, ReplayCacheMode::kOff).notes,
              ::testing::Not(::testing::Contains(HasSubstr("sends no packets"))));
}

TEST_F(FixedLatencyTest, WhatRepeatsItselfIsReplayedFromTheCache) {
  const RunResult result = RunOver("fixed", 40, ReplayCacheMode::kOn);
  EXPECT_GT(result.replayed_collectives, 30u);
  ASSERT_EQ(result.collectives.size(), 40u);
  EXPECT_EQ(result.collectives.back().duration_ps(), result.collectives.front().duration_ps());
}

// State that a snapshot cannot see might differ.
TEST_F(FixedLatencyTest, WithoutStateNothingIsReplayedAndTheRunSaysSo) {
  const RunResult result = RunOver("fixed_without_state", 40, ReplayCacheMode::kOn);
  EXPECT_EQ(result.replayed_collectives, 0u);
  ASSERT_EQ(result.never_replayed.size(), 1u);
  EXPECT_EQ(result.never_replayed[0].owner, "a transport of fixed latency");
  EXPECT_EQ(result.never_replayed[0].why, "it registers no state");
  EXPECT_THAT(result.notes, ::testing::Contains("The replay cache does not cover a transport of "
                                                "fixed latency: it registers no state."));
}

TEST_F(FixedLatencyTest, WhereNothingIsInTheWayNothingIsSaid) {
  EXPECT_TRUE(RunOver("fixed", 2, ReplayCacheMode::kOn).never_replayed.empty());
}

// Every hit is simulated as well; the run would end at a difference.
TEST_F(FixedLatencyTest, WhatIsReplayedIsWhatWouldHaveBeenSimulated) {
  EXPECT_EQ(RunOver("fixed", 40, ReplayCacheMode::kVerify).collectives.size(), 40u);
}

// 1 GiB takes 86 ms at the rate, without a packet; the payload that arrives is progress.
TEST_F(FixedLatencyTest, AWatchdogSeesMessagesThatAreNoPackets) {
  const LoadedScenario loaded(
      "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
      "transport: \"fixed\"\nnccl { MAX_NCHANNELS: 1 }\nwatchdog { no_progress: \"10ms\" }\n"
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"1GiB\" } } }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const RunResult result = RunScenario(*loaded.scenario, {});
  EXPECT_EQ(result.status, RunStatus::kCompleted) << result.status_detail;
  EXPECT_GE(result.payload_bytes, uint64_t{2} << 30);  // each rank sends all of it
}

TEST_F(FixedLatencyTest, FailoverOfNicsNeedsQueuePairs) {
  EXPECT_THAT(LoadedScenario(std::string(kFabric) + kWorkload +
                             "transport: \"fixed\" nic_failover { policy: PXN }")
                  .findings,
              HasSubstr("nic_failover: has no effect on transport \"fixed\", which has no queue "
                        "pairs to move"));
}

TEST_F(FixedLatencyTest, WhatActsOnPacketsIsRefused) {
  const std::string findings =
      LoadedScenario(std::string(kFabric) + kWorkload +
                     "transport: \"fixed\" network { load_balancing: ADAPTIVE }\n"
                     "nic { window: \"64KiB\" congestion_control { dcqcn {} } }\n"
                     "faults { name: \"loss\" kind: LOSS link: \"server0/nic0--leaf0\" at: \"1us\" "
                     "loss { probability: 0.1 } }\n")
          .findings;
  EXPECT_THAT(findings, HasSubstr("network.load_balancing: switches choose links by packet or "
                                  "flowlet, and transport \"fixed\" has none (expected ECMP, or "
                                  "transport: \"rdma\")"));
  EXPECT_THAT(findings,
              HasSubstr("nic.window: is of queue pairs, and transport \"fixed\" has none"));
  EXPECT_THAT(findings, HasSubstr("nic.congestion_control: is of queue pairs"));
  EXPECT_THAT(findings, HasSubstr("faults[0].kind: LOSS acts on packets, and transport \"fixed\" "
                                  "has none (expected transport: \"rdma\", or a scenario without "
                                  "it)"));
}

TEST_F(FixedLatencyTest, ANameThatNobodyHasRegisteredIsRefused) {
  EXPECT_THAT(LoadedScenario(std::string(kFabric) + kWorkload + "transport: \"rmda\"").findings,
              HasSubstr(":3:1: error: transport: unknown transport \"rmda\" (did you mean "
                        "\"rdma\"?)"));
}

TEST_F(FixedLatencyTest, ATransportThatContradictsTheNetworkIsRefused) {
  EXPECT_THAT(LoadedScenario(std::string(kFabric) + kWorkload + "transport: \"sockets\"").findings,
              HasSubstr("transport: \"sockets\" contradicts nccl.NET, which takes \"rdma\""));
}

}  // namespace
}  // namespace railyard::testing
