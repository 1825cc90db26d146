// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/scenario_builder.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "railyard/import_files.h"
#include "railyard/run.h"
#include "simulator/scenario/schema/scenario.h"
#include "topologies/graph/fabric_copy.h"
#include "traces/trace/trace_file.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
  EXPECT_EQ(built->stack.nic.ib_timeout, 14u);
  EXPECT_EQ(built->stack.nic.mtu_bytes, 2048u);
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
  // The rest of the finding depends on what other tests have registered.
  EXPECT_THAT(findings, HasSubstr("error: nic.congestion_control.registered: "));
  EXPECT_THAT(findings, HasSubstr("\"nobody\""));
}

// --- From files, and parts in memory -------------------------------------------------------------

TEST(ScenarioBuilderTest, WhatItSaysAsTextIsReadBackAsTheSame) {
  const std::string path =
      ::testing::TempDir() + "builder" + std::to_string(getpid()) + ".textproto";
  std::ofstream(path) << Small().Set("nccl.IB_TIMEOUT", 14).ToText();
  const ScenarioBuilder read = ScenarioBuilder::Read(path, {"seed=7"});
  const auto built = BuiltBy(read);
  std::filesystem::remove(path);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(built->stack.nic.ib_timeout, 14u);
  EXPECT_EQ(built->seed, 7u);
  EXPECT_EQ(read.ToText(), Small().Set("nccl.IB_TIMEOUT", 14).Set("seed", 7).ToText());
}

TEST(ScenarioBuilderTest, MistakesOfAFileAreFoundWhereTheyAreWritten) {
  const std::string path =
      ::testing::TempDir() + "mistakes" + std::to_string(getpid()) + ".textproto";
  std::ofstream(path) << "seed: 1\nnick: 2\n";
  EXPECT_THAT(FindingsOf(ScenarioBuilder::Read(path)),
              HasSubstr(path + ":2:1: error: nick: unknown field"));
  std::ofstream(path) << "seed: {{{\n";
  const std::string unreadable = FindingsOf(ScenarioBuilder::Read(path));
  std::filesystem::remove(path);
  EXPECT_THAT(unreadable, HasSubstr(path + ":1:"));
  EXPECT_THAT(unreadable, Not(HasSubstr("fabric: missing")));  // nothing is known of it
}

// Returns the calls of a scenario that is written to a file and read.
std::shared_ptr<const Trace> CallsOf(const ScenarioBuilder& builder) {
  const std::string path = ::testing::TempDir() + "calls" + std::to_string(getpid()) + ".textproto";
  std::ofstream(path) << builder.ToText();
  std::shared_ptr<const Trace> calls;
  Diagnostics diagnostics;
  EXPECT_NE(ReadScenario(path, {}, diagnostics, &calls), nullptr) << diagnostics.ToString();
  std::filesystem::remove(path);
  return calls;
}

TEST(ScenarioBuilderTest, CallsAreGivenToWhoeverAsksForThem) {
  const auto calls = CallsOf(Small());
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(calls.use_count(), 1);  // the scenario keeps none
  EXPECT_EQ(calls->rank_count, 16u);
  EXPECT_EQ(calls->operations[GlobalRank{15}].size(), 1u);
}

TEST(ScenarioBuilderTest, AGraphAndCallsInMemoryAreNotReadFromFiles) {
  const auto small = BuiltBy(Small());
  ASSERT_NE(small, nullptr);
  auto graph = std::make_shared<FabricGraph>(CopyOf(small->fabric));
  graph->name = "mine";
  ScenarioBuilder builder("parts");
  builder.Fabric(graph).Calls(CallsOf(Small()));
  const auto built = BuiltBy(builder);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(built->fabric.name, "mine");
  ASSERT_EQ(built->job.collectives.size(), 1u);
  EXPECT_EQ(built->job.collectives[0].bytes, small->job.collectives[0].bytes);
  // The last source stands, and copies keep their own.
  ScenarioBuilder other = builder;
  other.Fabric(scenario::RailOptimized{.servers = 4});
  EXPECT_EQ(BuiltBy(other)->fabric.gpus().size(), 32u);
  EXPECT_EQ(BuiltBy(builder)->fabric.gpus().size(), 16u);
}

TEST(ScenarioBuilderTest, AJobIsReadFromTheSourceThatWasNamedLast) {
  const auto trace = std::filesystem::temp_directory_path() /
                     ("railyard_job_" + std::to_string(getpid()) + ".trace");
  WriteTrace(trace.string(), *CallsOf(Small()));
  ScenarioBuilder builder("job");
  builder.Preset("h100-4x8-rail-optimized")
      .NcclLogs({RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log"});
  const auto logged = BuiltBy(builder);
  const auto planned =
      BuiltBy(builder.PlanFile(RAILYARD_SOURCE_DIR "/workloads/examples/gpt_2_32.textproto"));
  const auto traced = BuiltBy(builder.TraceFile(trace.string()));
  std::filesystem::remove(trace);
  ASSERT_TRUE(logged && planned && traced);
  ASSERT_EQ(logged->import_reports.size(), 1u);
  EXPECT_EQ(logged->import_reports[0].format, "nccl-log");
  EXPECT_EQ(logged->plan, nullptr);
  ASSERT_NE(planned->plan, nullptr);
  EXPECT_TRUE(planned->import_reports.empty());
  EXPECT_EQ(traced->plan, nullptr);
  ASSERT_EQ(traced->job.collectives.size(), 1u);
  EXPECT_EQ(traced->job.collectives[0].bytes, 1u << 20);
}

TEST(ScenarioBuilderTest, AGeneratorIsSetByItsFields) {
  ScenarioBuilder builder("fat_tree");
  builder.Set("fabric.fat_tree.radix", 16)
      .Set("fabric.fat_tree.servers[0].count", 4)
      .Add(scenario::Collective{.size = DataSize::MiB(1)});
  const auto built = BuiltBy(builder);
  ASSERT_NE(built, nullptr);
  EXPECT_EQ(built->fabric.gpus().size(), 32u);
}

TEST(ScenarioBuilderTest, ACapturedJobIsImportedAndRuns) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("railyard_import_" + std::to_string(getpid()) + ".goal");
  std::ofstream(path) << "num_ranks 2\nrank 0 {\na: send 65536b to 1 tag 7\n}\n"
                         "rank 1 {\na: recv 65536b from 0 tag 7\n}\n";
  Diagnostics diagnostics;
  TraceImport import = ImportFiles({path.string()}, kAutoFormat, {}, diagnostics);
  std::filesystem::remove(path);
  ASSERT_TRUE(import.trace) << diagnostics.ToString();
  EXPECT_EQ(import.report.format, "goal");
  ScenarioBuilder builder("captured");
  builder.Fabric(scenario::RailOptimized{.servers = 2})
      .Calls(std::make_shared<const Trace>(*std::move(import.trace)));
  const auto built = BuiltBy(builder);
  ASSERT_NE(built, nullptr);
  const Result result = railyard::Run(*built);
  ASSERT_EQ(result.collectives.size(), 1u);
  EXPECT_EQ(result.collectives[0].bytes, 65'536u);
}

TEST(ScenarioBuilderTest, AGraphOnWhichNoJobRunsIsAFinding) {
  ScenarioBuilder builder("parts");
  builder.Fabric(std::make_shared<const FabricGraph>()).Calls(CallsOf(Small()));
  EXPECT_THAT(FindingsOf(builder), HasSubstr("parts: error: fabric: "));
}

}  // namespace
}  // namespace railyard
