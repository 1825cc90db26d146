// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/run.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <sys/time.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "railyard/congestion_control.h"
#include "railyard/result.h"
#include "railyard/scenario_builder.h"

namespace railyard {
namespace {

constexpr uint64_t kCapBps = 10'000'000'000;

std::shared_ptr<const Scenario> BuiltBy(const ScenarioBuilder& builder) {
  Diagnostics diagnostics;
  auto scenario = builder.Build(diagnostics);
  EXPECT_NE(scenario, nullptr) << diagnostics.ToString();
  return scenario;
}

ScenarioBuilder Flap() {
  ScenarioBuilder builder("flap");
  builder.Fabric(scenario::RailOptimized{.servers = 2})
      .Add(scenario::Collective{.size = DataSize::MiB(8)})
      .Add(scenario::Fault{.name = "flap",
                           .link = "server1/nic3--leaf3",
                           .at = Duration::Us(60),
                           .until = Duration::Ms(1)})
      .Set("nccl.IB_TIMEOUT", 8);
  return builder;
}

// One GPU each on two servers: everything crosses the network, over one NIC's port.
ScenarioBuilder Pair() {
  ScenarioBuilder builder("pair");
  builder.Fabric(scenario::RailOptimized{.servers = 2, .gpus_per_server = 1})
      .Add(scenario::Collective{.operation = scenario::Operation::kSendRecv,
                                .size = DataSize::MiB(8)});
  return builder;
}

TEST(RunTest, OptionsAndAnEngineInUseAreRefused) {
  const auto scenario = BuiltBy(Pair());
  EXPECT_THROW(railyard::Run(*scenario, {.threads = 0}), EnvironmentError);
  ns3::Simulator::Schedule(ns3::Seconds(1), [] {});
  EXPECT_THROW(railyard::Run(*scenario), EnvironmentError);
  ns3::Simulator::Destroy();
  EXPECT_EQ(railyard::Run(*scenario).status, RunStatus::kCompleted);
}

TEST(RunTest, ACaptureOfALinkThatIsNotThereIsRefusedBeforeTheRun) {
  const auto scenario = BuiltBy(Pair());
  RunOptions options;
  options.captures = {{.name = "server0/nic0>leaf9", .file = "unused"}};
  try {
    railyard::Run(*scenario, options);
    FAIL() << "a capture of no link";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), ::testing::StartsWith(
                                  "RunOptions::captures: unknown link or cable "
                                  "\"server0/nic0>leaf9\" (did you mean \"server0/nic0>leaf0\"?"));
  }
  EXPECT_EQ(railyard::Run(*scenario).status, RunStatus::kCompleted);
}

void OnAlarm(int /*signal*/) {}

TEST(RunTest, SignalsAndTheTimerAreTheCallersAgain) {
  struct sigaction action = {};
  action.sa_handler = &OnAlarm;
  for (const int signal : {SIGALRM, SIGUSR1}) sigaction(signal, &action, nullptr);
  const itimerval hour = {.it_interval = {}, .it_value = {.tv_sec = 3600, .tv_usec = 0}};
  setitimer(ITIMER_REAL, &hour, nullptr);
  RunOptions options;
  options.progress = {.show = [](const RunProgress&) {}, .interval = std::chrono::milliseconds{1}};
  railyard::Run(*BuiltBy(Pair()), options);
  itimerval left = {};
  const itimerval none = {};
  setitimer(ITIMER_REAL, &none, &left);
  EXPECT_GT(left.it_value.tv_sec, 3000);
  for (const int signal : {SIGALRM, SIGUSR1}) {
    struct sigaction found = {};
    sigaction(signal, nullptr, &found);
    EXPECT_EQ(found.sa_handler, &OnAlarm) << signal;
    std::signal(signal, SIG_DFL);
  }
}

TEST(RunTest, ARunAfterAnotherHasTheSameResult) {
  const auto scenario = BuiltBy(Flap());
  const Result first = railyard::Run(*scenario);
  const Result between = railyard::Run(*BuiltBy(Pair()));
  const Result second = railyard::Run(*scenario);
  EXPECT_EQ(first.status, RunStatus::kCompleted);
  EXPECT_NE(first.fingerprint, between.fingerprint);
  EXPECT_EQ(first.fingerprint, second.fingerprint);
  EXPECT_EQ(first.simulated_time_ps, second.simulated_time_ps);
  EXPECT_EQ(first.baseline_simulated_time_ps, second.baseline_simulated_time_ps);
  EXPECT_GT(first.faults.front().dropped_packets, 0u);
}

TEST(RunTest, ABuiltScenarioRunsAsItsTextDoes) {
  const std::string path = ::testing::TempDir() + "flap.textproto";
  std::ofstream(path)
      << "fabric { rail_optimized { servers: 2 } }\n"
         "workload { program { collectives { kind: ALL_REDUCE bytes: \"8MiB\" } } }\n"
         "nccl { IB_TIMEOUT: 8 }\n"
         "faults { name: \"flap\" kind: LINK_DOWN link: \"server1/nic3--leaf3\"\n"
         "         at: \"60us\" until: \"1ms\" }\n";
  Diagnostics diagnostics;
  const auto read = ReadScenario(path, {}, diagnostics);
  ASSERT_NE(read, nullptr) << diagnostics.ToString();
  const Result of_text = railyard::Run(*read);
  const Result built = railyard::Run(*BuiltBy(Flap()));
  EXPECT_EQ(built.fingerprint, of_text.fingerprint);
  EXPECT_EQ(built.simulated_time_ps, of_text.simulated_time_ps);
}

TEST(RunTest, ARunWithinARunIsRefused) {
  const auto scenario = BuiltBy(Flap());
  std::string refusal;
  RegisterCongestionControl("nesting", {}, [&](const ControlledQueuePair&) {
    try {
      railyard::Run(*scenario);
    } catch (const EnvironmentError& error) {
      refusal = error.what();
    }
    return std::make_unique<QueuePairControl>();
  });
  ScenarioBuilder builder = Pair();
  builder.Set("nic.congestion_control.registered", "nesting");
  const auto nesting = BuiltBy(builder);
  EXPECT_EQ(railyard::Run(*nesting).status, RunStatus::kCompleted);
  EXPECT_THAT(refusal, ::testing::HasSubstr("while another run goes on in this process"));
}

// Lets queue pairs send at a rate of its own.
class Cap : public QueuePairControl {
 public:
  Cap() { SetLimits({.rate_bps = kCapBps}); }
};

TEST(RunTest, ARegisteredControlDecidesHowFastQueuePairsSend) {
  RegisterCongestionControl("cap", {},
                            [](const ControlledQueuePair&) { return std::make_unique<Cap>(); });
  ScenarioBuilder builder = Pair();
  builder.Set("nccl.MAX_NCHANNELS", 1).Set("nccl.MIN_NCHANNELS", 1);
  const Result free = railyard::Run(*BuiltBy(builder));
  builder.Set("nic.congestion_control.registered", "cap");
  const Result capped = railyard::Run(*BuiltBy(builder));
  ASSERT_EQ(capped.collectives.size(), 1u);
  // Each direction is one queue pair per channel; all its bytes pass at the cap's rate at most.
  const double at_cap_ps = 8.0 * (8 << 20) / static_cast<double>(kCapBps) * 1e12;
  EXPECT_GT(static_cast<double>(capped.simulated_time_ps), 0.25 * at_cap_ps);
  EXPECT_GT(capped.simulated_time_ps, 2 * free.simulated_time_ps);
}

// Sends at an eighth of the line rate once it has received 3,000 ACKs. Until then it has no limits,
// so no snapshot shows its state.
class Falling : public QueuePairControl {
 public:
  explicit Falling(const ControlledQueuePair& queue_pair)
      : line_rate_bps_(queue_pair.line_rate_bps) {}
  void OnAcknowledged(const AckInfo& /*ack*/) override {
    if (++acks_ > 3'000) SetLimits({.rate_bps = line_rate_bps_ / 8});
  }

 private:
  uint64_t line_rate_bps_;
  uint64_t acks_ = 0;
};

TEST(RunTest, ARegisteredControlIsNeverReplayed) {
  RegisterCongestionControl(
      "falling", {.acknowledgements = true},
      [](const ControlledQueuePair& queue_pair) { return std::make_unique<Falling>(queue_pair); });
  ScenarioBuilder builder("falling");
  builder.Fabric(scenario::RailOptimized{.servers = 2, .gpus_per_server = 1})
      .Add(scenario::Collective{.size = DataSize::MiB(4), .repeat = 60})
      .Set("nic.congestion_control.registered", "falling");
  const auto scenario = BuiltBy(builder);
  const Result with = railyard::Run(*scenario, {.replay_cache = ReplayCacheMode::kOn});
  const Result without = railyard::Run(*scenario, {.replay_cache = ReplayCacheMode::kOff});
  EXPECT_EQ(with.replayed_collectives, 0u);
  EXPECT_EQ(with.never_replayed.size(), 1u);
  EXPECT_EQ(with.simulated_time_ps, without.simulated_time_ps);
  EXPECT_EQ(with.fingerprint, without.fingerprint);
}

}  // namespace
}  // namespace railyard
