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

void Register(const std::string& name, int64_t latency_ps) {
  RegisterNetworkStack(
      name, [latency_ps](const NetworkStackParts& parts, const NetworkStackSettings&) {
        return std::make_unique<FixedLatencyStack>(parts.network.engine(), latency_ps, kRateBps);
      });
}

// Two servers of one GPU, so that all goes over the transport; what GPUs and proxies take is 0 or
// as stated.
constexpr const char* kTwoGpus =
    "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
    "gpu { network_step_latency: \"0s\" proxy_post_latency: \"0s\" "
    "proxy_arrival_latency: \"0s\" channel_rate: \"1000Tbps\" ";

RunResult RunOver(const std::string& transport, const std::string& launch_latency,
                  const std::string& program, const RunOptions& options = {}) {
  LoadedScenario loaded(fmt::format(
      "{}launch_latency: \"{}\" }}\ntransport: \"{}\"\nworkload {{ program {{ collectives {{ {} "
      "}} }} algorithm: RING protocol: SIMPLE }}\n"
      "nccl {{ MAX_NCHANNELS: 1 }}\n",
      kTwoGpus, launch_latency, transport, program));
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  return RunScenario(*loaded.scenario, options);
}

// A ring of two takes two steps for a message of one slice: a clear-to-send and two messages, one
// after the other, each of half of the bytes.
TEST(FixedLatencyTest, AnAllReduceTakesThreeLatenciesAndItsBytesAtTheRate) {
  constexpr int64_t kLatencyPs = 100 * kPsPerUs;
  Register("fixed", kLatencyPs);
  const RunResult result = RunOver("fixed", "0s", "kind: ALL_REDUCE bytes: \"64KiB\"");
  ASSERT_EQ(result.collectives.size(), 1u);
  const int64_t bytes_ps = TransferTimePs(64 << 10, kRateBps);
  const int64_t duration_ps = result.collectives[0].duration_ps();
  EXPECT_NEAR(static_cast<double>(duration_ps), static_cast<double>(3 * kLatencyPs + bytes_ps),
              1e5);
}

constexpr const char* kRepeated = "kind: ALL_REDUCE bytes: \"64KiB\" repeat: 40";

// While a call is launched, nothing is under way any more.
TEST(FixedLatencyTest, WhatRepeatsItselfIsReplayedFromTheCache) {
  Register("fixed", 100 * kPsPerUs);
  const RunResult result = RunOver("fixed", "1ms", kRepeated);
  EXPECT_GT(result.replayed_collectives, 30u);
  EXPECT_EQ(result.collectives.size(), 40u);
}

// Every hit is simulated as well, and the run ends at a difference.
TEST(FixedLatencyTest, WhatIsReplayedIsWhatWouldHaveBeenSimulated) {
  Register("fixed", 100 * kPsPerUs);
  const RunResult result =
      RunOver("fixed", "1ms", kRepeated, {.replay_cache = ReplayCacheMode::kVerify});
  EXPECT_EQ(result.collectives.size(), 40u);
}

TEST(FixedLatencyTest, ANameThatNobodyHasRegisteredIsRefused) {
  EXPECT_THAT(LoadedScenario(std::string(kFabric) + kWorkload + "transport: \"rmda\"").findings,
              HasSubstr(":3:1: error: transport: unknown transport \"rmda\" (did you mean "
                        "\"rdma\"?)"));
}

TEST(FixedLatencyTest, ATransportThatContradictsTheNetworkIsRefused) {
  EXPECT_THAT(LoadedScenario(std::string(kFabric) + kWorkload + "transport: \"sockets\"").findings,
              HasSubstr("transport: \"sockets\" contradicts nccl.NET, which takes \"rdma\""));
}

}  // namespace
}  // namespace railyard::testing
