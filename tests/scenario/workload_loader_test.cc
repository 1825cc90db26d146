// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/workload_loader.h"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"
#include "traces/trace/trace_file.h"
#include "workloads/collectives/replayable.h"

namespace railyard {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// As NCCL 2.27 prints it: two ranks of one server, one AllReduce of 1,024 floats.
std::string Log(const std::string& choice, int ranks_present = 2) {
  std::string log = "NCCL version 2.27.5+cuda12.4\n";
  for (int rank = 0; rank < ranks_present; ++rank) {
    log += fmt::format(
        "node0:10{0}:10{0} [{0}] NCCL INFO ncclCommInitRank comm 0x5{0} rank {0} nranks 2 cudaDev "
        "{0} nvmlDev {0} busId {0}000 commId 0xabc - Init COMPLETE\n",
        rank);
  }
  for (int rank = 0; rank < ranks_present; ++rank) {
    log += fmt::format(
        "node0:10{0}:10{0} [{0}] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count "
        "1024 datatype 7 op 0 root 0 comm 0x5{0} [nranks=2] stream 0x7\n",
        rank);
    if (rank == 0 && !choice.empty()) {
      log += fmt::format(
          "node0:10{0}:10{0} [{0}] NCCL INFO AllReduce: 4096 Bytes -> Algo {1} "
          "channel{{Lo..Hi}}={{0..0}}\n",
          rank, choice);
    }
  }
  return log;
}

std::string Write(const TextFile& file, const std::string& name, const std::string& text) {
  std::string path = file.directory() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

class WorkloadLoaderTest : public ::testing::Test {
 protected:
  // Loads a scenario whose workload block is `workload`, beside a file job.log.
  void Load(const std::string& workload, const std::string& log) {
    file_.reset();  // removes what it wrote
    file_ = std::make_unique<TextFile>(std::string(kFabric) + "workload { " + workload + " }\n");
    log_ = Write(*file_, "job.log", log);
    Diagnostics diagnostics;
    scenario_ = LoadScenario(file_->path(), {}, diagnostics);
    findings_ = file_->WithoutPath(diagnostics.ToString());
  }

  std::unique_ptr<TextFile> file_;
  std::string log_;
  std::unique_ptr<Scenario> scenario_;
  std::string findings_;
};

TEST_F(WorkloadLoaderTest, ALogBesideTheScenarioIsReadWithItsReport) {
  Load("nccl_log { files: \"job.log\" }", Log("RING proto SIMPLE"));
  ASSERT_NE(scenario_, nullptr) << findings_;
  EXPECT_EQ(scenario_->job.rank_count, 2u);
  ASSERT_EQ(scenario_->job.collectives.size(), 1u);
  EXPECT_EQ(scenario_->job.collectives[0].bytes, 4096u);
  EXPECT_EQ(scenario_->nccl.version, 22705u);
  ASSERT_TRUE(!scenario_->import_reports.empty());
  EXPECT_EQ(scenario_->import_reports[0].calls_seen(), 2u);
}

TEST_F(WorkloadLoaderTest, WhatCannotBeReplayedIsRefusedAndSaysWhatToDo) {
  Load("nccl_log { files: \"job.log\" }", Log("COLLNET_CHAIN proto SIMPLE"));
  EXPECT_EQ(scenario_, nullptr);
  EXPECT_THAT(
      findings_,
      StartsWith(":2:12: error: workload.nccl_log: 1 AllReduce ran as "
                 "COLLNET_CHAIN/SIMPLE, which cannot be replayed here (expected RING/LL, "));
  EXPECT_THAT(findings_, EndsWith("; workload.algorithm: RING replays them so)\n" + log_ +
                                  ":4:1: note: the first of them\n"));
}

TEST_F(WorkloadLoaderTest, WhatALogStatesIsReplayed) {
  Load("nccl_log { files: \"job.log\" }", Log("TREE proto LL"));
  ASSERT_NE(scenario_, nullptr) << findings_;
  EXPECT_EQ(StatedChoice(scenario_->job.collectives[0]),
            (ReplayChoice{Algorithm::kTree, Protocol::kLl}));
}

TEST_F(WorkloadLoaderTest, RingIsReplayedWhateverTheLogSaysIfTheScenarioSaysSo) {
  Load("algorithm: RING nccl_log { files: \"job.log\" }", Log("TREE proto LL"));
  ASSERT_NE(scenario_, nullptr) << findings_;
  EXPECT_EQ(StatedChoice(scenario_->job.collectives[0]),
            (ReplayChoice{Algorithm::kRing, Protocol::kUnstated}));
  EXPECT_EQ(scenario_->job.collectives[0].logged_algorithm, Algorithm::kTree);
}

TEST_F(WorkloadLoaderTest, AnAlgorithmThatDoesNotSuitIsRefusedWhereItIsStated) {
  Load("algorithm: NVLS_TREE program { collectives { kind: ALL_GATHER bytes: \"1MiB\" } }", "");
  EXPECT_EQ(scenario_, nullptr);
  EXPECT_THAT(findings_, HasSubstr(":2:12: error: workload.algorithm: 1 AllGather cannot run as "
                                   "NVLS_TREE on "));
  const size_t expected = findings_.find("(expected ");
  ASSERT_NE(expected, std::string::npos);
  EXPECT_THAT(findings_.substr(expected), HasSubstr("RING/SIMPLE"));
  EXPECT_THAT(findings_.substr(expected), Not(HasSubstr("NVLS_TREE")));
}

TEST_F(WorkloadLoaderTest, AnAlgorithmBesideAlgoLeavesThatNothingToChoose) {
  Load(
      "algorithm: RING program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } }\n"
      "nccl { ALGO: \"Tree\"",
      "");
  EXPECT_EQ(findings_,
            ":3:8: error: nccl.ALGO: has no effect: workload.algorithm replaces it (expected one "
            "of the two)\n");
}

TEST_F(WorkloadLoaderTest, MissingRanksAreRefusedUnlessTheScenarioSaysReconstruct) {
  Load("nccl_log { files: \"job.log\" }", Log("", 1));
  EXPECT_EQ(scenario_, nullptr);
  EXPECT_THAT(findings_, HasSubstr("error: "));
  Load("nccl_log { files: \"job.log\" missing_ranks: RECONSTRUCT }", Log("", 1));
  ASSERT_NE(scenario_, nullptr) << findings_;
  EXPECT_EQ(scenario_->job.rank_count, 2u);
  EXPECT_FALSE(scenario_->notes.empty());
}

TEST_F(WorkloadLoaderTest, MissingFilesAreReportedWhereTheyAreNamed) {
  Load("nccl_log { files: [\"job.log\", \"x\"] }", Log(""));
  EXPECT_THAT(findings_, HasSubstr(":2:42: error: workload.nccl_log.files[1]: "));
  EXPECT_THAT(findings_, HasSubstr(": there is no such file\n"));
  Load("trace: \"x\"", "");
  EXPECT_THAT(findings_, HasSubstr(":2:12: error: workload.trace: "));
  Load("trace: \".\"", "");
  EXPECT_THAT(findings_, HasSubstr(": that is a directory (expected a file)\n"));
}

TEST_F(WorkloadLoaderTest, RankMapEntriesAreComplete) {
  Load("nccl_log { files: \"job.log\"\nrank_map { } }", Log(""));
  EXPECT_EQ(
      findings_,
      ":3:1: error: workload.nccl_log.rank_map[0].host: missing (expected as in the log's "
      "prefix, e.g. \"node0\")\n"
      ":3:1: error: workload.nccl_log.rank_map[0].pid: missing (expected as in the log's "
      "prefix)\n"
      ":3:1: error: workload.nccl_log.rank_map[0].rank: missing (expected its rank in the job, "
      "from 0)\n");
}

TEST_F(WorkloadLoaderTest, ARankMapEntryThatMatchesNoProcessIsAnError) {
  Load("nccl_log { files: \"job.log\"\nrank_map { host: \"elsewhere\" pid: 1 rank: 0 } }", Log(""));
  EXPECT_EQ(scenario_, nullptr);
  EXPECT_THAT(findings_, HasSubstr(":3:1: error: "));
}

// The setting that would apply to a log is not known, so nothing is concluded from it.
TEST_F(WorkloadLoaderTest, ALogIsNotJudgedBySettingsThatCannotBeRead) {
  Load("algorithm: RNIG nccl_log { files: \"job.log\" }", Log("TREE proto LL"));
  EXPECT_EQ(findings_,
            ":2:23: error: workload.algorithm: unknown \"RNIG\" (did you mean \"RING\"?)\n");
  Load("nccl_log { files: \"job.log\" missing_ranks: RECONSTRCT }", Log("", 1));
  EXPECT_EQ(findings_,
            ":2:55: error: workload.nccl_log.missing_ranks: unknown \"RECONSTRCT\" (did you mean "
            "\"RECONSTRUCT\"?)\n");
  Load("nccl_log { files: [\"job.log\", 3, \"x\"] }", Log(""));
  EXPECT_THAT(findings_, HasSubstr("files[1]: \"3\" is not a text in quotes\n"));
  EXPECT_THAT(findings_, HasSubstr("files[2]: "));  // there is no such file
  EXPECT_EQ(std::count(findings_.begin(), findings_.end(), '\n'), 2);
}

TEST_F(WorkloadLoaderTest, AWorkloadNamesItsSource) {
  Load("", "");
  EXPECT_EQ(findings_,
            ":2:1: error: workload.nccl_log: missing (expected nccl_log, trace, program, plan or "
            "inline_plan)\n");
  Load("nccl_log { }", "");
  EXPECT_EQ(findings_,
            ":2:12: error: workload.nccl_log.files: missing (expected one log or more)\n");
}

TEST_F(WorkloadLoaderTest, ALogWithoutCallsIsAnError) {
  Load("nccl_log { files: \"job.log\" }", "nothing of NCCL's\n");
  EXPECT_EQ(scenario_, nullptr);
  EXPECT_THAT(findings_, HasSubstr("error: "));
}

TEST_F(WorkloadLoaderTest, AJobLargerThanTheFabricIsRefused) {
  Trace trace;
  trace.origin = "program";
  trace.rank_count = 17;
  trace.communicators.push_back({.name = "comm0", .ranks = {}});
  for (GlobalRank rank{0}; rank < 17; ++rank) trace.communicators[0].ranks.emplace_back(rank);
  trace.operations.resize(17);
  for (GlobalRank rank{0}; rank < 17; ++rank)
    trace.operations[GlobalRank{rank}] = {TraceOperation{.count = 1}};
  Load("trace: \"job.trace\"", "");
  WriteTrace(file_->directory() + "/job.trace", trace);
  Diagnostics diagnostics;
  EXPECT_EQ(LoadScenario(file_->path(), {}, diagnostics), nullptr);
  EXPECT_EQ(file_->WithoutPath(diagnostics.ToString()),
            ":2:12: error: workload.trace: the job has 17 ranks, the fabric 16 GPUs (expected one "
            "for each)\n");
}

TEST_F(WorkloadLoaderTest, ATraceWithoutCallsIsAnError) {
  Trace trace;
  trace.origin = "program";
  trace.rank_count = 2;
  trace.operations.resize(2);
  Load("trace: \"job.trace\"", "");
  WriteTrace(file_->directory() + "/job.trace", trace);
  Diagnostics diagnostics;
  EXPECT_EQ(LoadScenario(file_->path(), {}, diagnostics), nullptr);
  EXPECT_EQ(file_->WithoutPath(diagnostics.ToString()),
            ":2:12: error: workload.trace: holds no collective (expected at least one)\n");
}

TEST(WorkloadPlanTest, AnInlinePlanIsTheFilesPlan) {
  const std::string plan =
      "model { preset: \"gpt-2\" }\n"
      "parallelism { tensor: 4 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.6 }\n"
      "inference { queries: 1 prompt_tokens: 8 output_tokens: 2 }\n";
  const LoadedScenario is_inline(std::string(kFabric) + "workload { inline_plan { " + plan + "} }");
  EXPECT_EQ(is_inline.findings, "");
  ASSERT_NE(is_inline.scenario, nullptr);
  EXPECT_EQ(is_inline.scenario->job.collectives.size(), 2u * (1 + 2 * 12 + 1));

  const TextFile file(plan, "job.textproto");
  const LoadedScenario is_file(std::string(kFabric) + "workload { plan: \"" + file.path() + "\" }");
  EXPECT_EQ(is_file.findings, "");
  ASSERT_NE(is_file.scenario, nullptr);
  EXPECT_EQ(is_file.calls->operations[GlobalRank{0}], is_inline.calls->operations[GlobalRank{0}]);
}

TEST(WorkloadPlanTest, FindingsStandInThePlan) {
  const LoadedScenario loaded(std::string(kFabric) +
                              "workload { inline_plan { model { preset: \"gpt-2\" layers: 0 }\n"
                              "parallelism { tensor: 4 }\n"
                              "compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                              "memory_utilisation: 0.6 }\n"
                              "inference { queries: 1 prompt_tokens: 8 output_tokens: 2 } } }\n");
  EXPECT_EQ(loaded.findings,
            ":2:50: error: workload.inline_plan.model.layers: 0 is out of range (expected 1 to "
            "4096)\n");
}

TEST(WorkloadPlanTest, AJobLargerThanTheFabricIsRefused) {
  const LoadedScenario loaded(std::string(kFabric) +
                              "workload { inline_plan { model { preset: \"llama-2-7b\" }\n"
                              "parallelism { tensor: 32 }\n"
                              "compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
                              "memory_utilisation: 0.6 }\n"
                              "inference { queries: 1 prompt_tokens: 8 output_tokens: 2 } } }\n");
  EXPECT_EQ(
      loaded.findings,
      ":2:12: error: workload.inline_plan: the job has 32 ranks, the fabric 16 GPUs (expected "
      "one for each)\n");
}

TEST(WorkloadLimitsTest, LimitsAreChecked) {
  const std::string program =
      "program { collectives { kind: ALL_REDUCE bytes: \"4KiB\" repeat: 3 } }";
  const LoadedScenario two(std::string(kFabric) + "workload { " + program + " operations_max: 2 }");
  ASSERT_NE(two.scenario, nullptr);
  EXPECT_EQ(two.scenario->job.collectives.size(), 2u);
  const LoadedScenario wrong(std::string(kFabric) + "workload { " + program +
                             "\noperations_max: 0\nrank_skew_max: \"2s\" }\n");
  EXPECT_EQ(wrong.findings,
            ":3:1: error: workload.operations_max: 0 is out of range (expected 1 to "
            "4294967295)\n"
            ":4:1: error: workload.rank_skew_max: \"2s\" is too long (expected at most 1 s)\n");
}

TEST(RegisteredAlgorithmTest, MustExistAndServeTheJob) {
  const auto workload = [](const std::string& kind, const std::string& more) {
    return std::string(kFabric) + "workload { program { collectives { kind: " + kind +
           " bytes: \"4KiB\" } }\nregistered_algorithm: " + more + " }\n";
  };
  const LoadedScenario good(workload("ALL_REDUCE", "\"recursive_doubling\""));
  EXPECT_EQ(good.findings, "");
  EXPECT_EQ(LoadedScenario(workload("ALL_REDUCE", "\"recursive_dubling\"")).findings,
            ":3:1: error: workload.registered_algorithm: unknown algorithm \"recursive_dubling\" "
            "(did you mean \"recursive_doubling\"?)\n");
  EXPECT_EQ(LoadedScenario(workload("ALL_GATHER", "\"recursive_doubling\"")).findings,
            ":3:1: error: workload.registered_algorithm: \"recursive_doubling\" serves no "
            "collective of the job (expected an algorithm for one of them)\n");
  EXPECT_EQ(
      LoadedScenario(workload("ALL_REDUCE", "\"recursive_doubling\" algorithm: RING")).findings,
      ":3:44: error: workload.algorithm: has no effect: registered_algorithm runs every "
      "collective (expected one of the two)\n");
}

}  // namespace
}  // namespace railyard
