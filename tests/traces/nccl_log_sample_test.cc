// SPDX-License-Identifier: GPL-2.0-only
// The sample's import is its plan (traces/samples/generate_h100_4x8_sample.py), operation by
// operation.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/log_text.h"

namespace railyard::testing {
namespace {

struct Planned {
  CollectiveKind kind;
  uint64_t count;
  Datatype datatype;
  std::vector<GlobalRank> ranks;
};

std::vector<Planned> PlanOf(GlobalRank rank) {
  constexpr uint64_t kActivation = uint64_t{1} * 2048 * 4096;
  constexpr uint64_t kBucketPerRank = 64 * 1024 * 1024 / 2 / 4;
  std::vector<GlobalRank> server;
  std::vector<GlobalRank> rail;
  std::vector<GlobalRank> world;
  for (uint32_t i = 0; i < 8; ++i) server.emplace_back(rank / 8 * 8 + i);
  for (uint32_t i = 0; i < 4; ++i) rail.emplace_back(i * 8 + rank % 8);
  for (uint32_t i = 0; i < 32; ++i) world.emplace_back(i);
  std::vector<Planned> plan;
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (int i = 0; i < 6 * (2 + 2); ++i) {
      plan.push_back({CollectiveKind::kAllReduce, kActivation, Datatype::kBfloat16, server});
    }
    for (const auto kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
      for (int bucket = 0; bucket < 2; ++bucket) {
        plan.push_back({kind, kBucketPerRank, Datatype::kBfloat16, rail});
      }
    }
    plan.push_back({CollectiveKind::kAllReduce, 1, Datatype::kFloat32, world});
  }
  return plan;
}

TEST(NcclLogSampleTest, TheImportIsExactlyThePlan) {
  Diagnostics diagnostics;
  const TraceImport import = ReadNcclLogs(
      {.files = {RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log"}}, diagnostics);
  ASSERT_TRUE(import.trace) << diagnostics.ToString();
  const Trace& trace = *import.trace;
  ASSERT_EQ(trace.rank_count, 32u);
  EXPECT_EQ(trace.nccl_version, "2.27.5");
  EXPECT_EQ(trace.communicators.size(), 1u + 4u + 8u);
  for (GlobalRank rank{0}; rank < 32; ++rank) {
    const std::vector<Planned> plan = PlanOf(rank);
    ASSERT_EQ(trace.operations[rank].size(), plan.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      const TraceOperation& operation = trace.operations[rank][i];
      EXPECT_EQ(operation.kind, plan[i].kind);
      EXPECT_EQ(operation.count, plan[i].count);
      EXPECT_EQ(operation.datatype, plan[i].datatype);
      EXPECT_EQ(trace.communicators[operation.communicator].ranks, plan[i].ranks);
      EXPECT_EQ(operation.stream, 0u);
      EXPECT_EQ(operation.algorithm, Algorithm::kRing);
      EXPECT_EQ(operation.protocol, Protocol::kSimple);
    }
  }
}

TEST(NcclLogSampleTest, TheReportOfTheSampleIsClean) {
  Diagnostics diagnostics;
  const TraceImport import = ReadNcclLogs(
      {.files = {RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log"}}, diagnostics);
  EXPECT_EQ(import.report.calls_seen(), 32u * 58u);
  EXPECT_EQ(import.report.calls_imported(), 32u * 58u);
  EXPECT_EQ(import.report.calls_with_algorithm, 32u * 58u);
  EXPECT_EQ(import.report.tuning_lines_unmatched, 0u);
  EXPECT_TRUE(import.report.assumed.empty());
  EXPECT_TRUE(import.report.reconstructed.empty());
  EXPECT_TRUE(diagnostics.findings().empty());
}

TEST(NcclLogSampleTest, OneServersShareIsEnoughToReconstructTheJob) {
  const std::string log = ReadFile(RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log");
  std::string server0;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = log.find('\n', begin) + 1;
    if (log.compare(begin, 6, "node0:") == 0) server0 += log.substr(begin, end - begin);
    begin = end;
  }
  const ImportResult result =
      Import(server0, {.missing_ranks = NcclLogOptions::MissingRanks::kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  for (GlobalRank rank{0}; rank < 32; ++rank) {
    const std::vector<Planned> plan = PlanOf(rank);
    const auto& operations = result.import.trace->operations[rank];
    ASSERT_EQ(operations.size(), plan.size());
    for (size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(operations[i].kind, plan[i].kind);
      EXPECT_EQ(operations[i].count, plan[i].count);
      EXPECT_EQ(result.import.trace->communicators[operations[i].communicator].ranks,
                plan[i].ranks);
    }
  }
}

}  // namespace
}  // namespace railyard::testing
