// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/scenario_builder.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/schema/scenario.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// Sixteen GPUs that reduce 1 MiB.
ScenarioBuilder Small() {
  ScenarioBuilder builder("small");
  builder.Fabric(scenario::RailOptimized{.servers = 2})
      .Add(scenario::Collective{.size = DataSize::MiB(1)});
  return builder;
}

std::string FindingsOf(const ScenarioBuilder& builder) {
  Diagnostics diagnostics;
  EXPECT_EQ(builder.Build(diagnostics), nullptr);
  EXPECT_TRUE(diagnostics.HasErrors());
  return diagnostics.ToString();
}

std::shared_ptr<const Scenario> BuiltBy(const ScenarioBuilder& builder) {
  Diagnostics diagnostics;
  auto scenario = builder.Build(diagnostics);
  EXPECT_NE(scenario, nullptr) << diagnostics.ToString();
  return scenario;
}

TEST(ScenarioBuilderTest, TypedBlocksBecomeTheScenario) {
  ScenarioBuilder builder = Small();
  builder
      .Add(scenario::Collective{.operation = scenario::Operation::kBroadcast,
                                .size = DataSize::KiB(3),
                                .root = 5,
                                .repeat = 2})
      .Add(scenario::Fault{.name = "flap",
                           .link = "server1/nic3--leaf3",
                           .at = Duration::Us(7),
                           .until = Duration::Ms(2)})
      .Set("seed", 42)
      .Set("nccl.IB_TIMEOUT", 14)
      .Set("nic.mtu_bytes", 2048u)
      .Set("switch.ecn_enabled", false);
  const auto built = BuiltBy(builder);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(built->name, "small");
  EXPECT_EQ(built->seed, 42u);
  EXPECT_EQ(built->fabric.gpus().size(), 16u);
  ASSERT_EQ(built->job.collectives.size(), 3u);
  EXPECT_EQ(built->job.collectives[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(built->job.collectives[0].bytes, uint64_t{1} << 20);
  EXPECT_EQ(built->job.collectives[2].kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(built->job.collectives[2].bytes, 3u << 10);
  EXPECT_EQ(built->job.collectives[2].root, 5u);
  ASSERT_EQ(built->faults.size(), 1u);
  EXPECT_EQ(built->faults[0].name, "flap");
  EXPECT_EQ(built->nic.ib_timeout, 14u);
  EXPECT_EQ(built->nic.mtu_bytes, 2048u);
}

TEST(ScenarioBuilderTest, ServersOfPlatformsBecomeTheFabric) {
  ScenarioBuilder builder("mixed");
  builder.Fabric({scenario::Servers{.platform = "dgx-h100", .count = 2},
                  scenario::Servers{.platform = "dgx-a100", .count = 1}});
  builder.Add(scenario::Collective{.size = DataSize::MiB(1)});
  const auto built = BuiltBy(builder);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(built->fabric.gpus().size(), 24u);
}

TEST(ScenarioBuilderTest, ACopyIsChangedAlone) {
  const ScenarioBuilder first = Small();
  ScenarioBuilder second = first;
  second.Set("seed", 7);
  EXPECT_EQ(BuiltBy(first)->seed, 1u);
  EXPECT_EQ(BuiltBy(second)->seed, 7u);
}

TEST(ScenarioBuilderTest, EverythingWrongIsReportedAtOnceByField) {
  ScenarioBuilder builder = Small();
  builder.Set("nccl.IB_TIMEOOT", 14)
      .Set("seed", "many")
      .Set("faults[3].name", "x")
      .Set("nic.mtu_bytes", -1)
      .Add(scenario::Fault{.link = "server9/nic0--leaf0", .at = Duration{}});
  const std::string findings = FindingsOf(builder);
  EXPECT_THAT(findings,
              HasSubstr("small: error: nccl.IB_TIMEOOT: unknown field \"IB_TIMEOOT\" (did you mean "
                        "\"IB_TIMEOUT\"?)\n"));
  EXPECT_THAT(findings,
              HasSubstr("small: error: seed: \"many\" is no value of it (expected a whole "
                        "number, 0 to 18446744073709551615)\n"));
  EXPECT_THAT(findings, HasSubstr("small: error: faults[3]: there are only 0 (faults[0] would"));
  EXPECT_THAT(findings, HasSubstr("small: error: nic.mtu_bytes: -1 is no value of it (expected a "
                                  "whole number, 0 to 4294967295)\n"));
  EXPECT_THAT(findings, HasSubstr("small: error: faults[0].link: "));
}

TEST(ScenarioBuilderTest, WhatIsMissingIsReported) {
  const std::string findings = FindingsOf(ScenarioBuilder("empty"));
  EXPECT_THAT(findings, HasSubstr("empty: error: fabric: missing (expected"));
  EXPECT_THAT(findings, HasSubstr("empty: error: workload: missing (expected"));
}

TEST(ScenarioBuilderTest, HostileNamesAreFindings) {
  EXPECT_THAT(FindingsOf(ScenarioBuilder("../../x")), HasSubstr("cannot name a result"));
  ScenarioBuilder builder = Small();
  builder.Set("nccl.version", std::string("2\0.27", 5));
  EXPECT_THAT(FindingsOf(builder), HasSubstr("nccl.version: \"2\\x00.27\" is no value of it"));
  builder = Small();
  builder.Set("", 1).Set("a..b", 1).Set("faults[99999999999999999999].name", "x");
  EXPECT_THAT(FindingsOf(builder), HasSubstr("is not the path of a field"));
}

TEST(ScenarioBuilderTest, AnUnregisteredCongestionControlIsAFinding) {
  ScenarioBuilder builder = Small();
  builder.Set("nic.congestion_control.registered", "nobody");
  const std::string findings = FindingsOf(builder);
  // How it goes on depends on what other tests have registered.
  EXPECT_THAT(findings, HasSubstr("error: nic.congestion_control.registered: "));
  EXPECT_THAT(findings, HasSubstr("\"nobody\""));
}

}  // namespace
}  // namespace railyard
