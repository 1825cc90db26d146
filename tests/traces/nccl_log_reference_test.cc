// SPDX-License-Identifier: GPL-2.0-only
// Logs that real jobs printed: not part of the project, read where they are present.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/support/regex.h"
#include "tests/traces/log_text.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

NcclLogOptions Reconstruct() {
  return {.missing_ranks = NcclLogOptions::MissingRanks::kReconstruct};
}

TEST(NcclLogReferenceTest, EveryFileIsReadToItsLastLineAndEveryCallIsSeen) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::regex call(
      "(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AlltoAll|Gather|Scatter|"
      "PutSignal|Signal|WaitSignal): opCount");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(reference_dir + "/nccl-logs")) {
    if (entry.path().extension() != ".log") continue;
    ++files;
    const std::string text = ReadFile(entry.path());
    for (const auto missing :
         {NcclLogOptions::MissingRanks::kRefuse, NcclLogOptions::MissingRanks::kReconstruct}) {
      Diagnostics diagnostics;
      const TraceImport import =
          ReadNcclLogs({.files = {entry.path()}, .missing_ranks = missing}, diagnostics);
      EXPECT_EQ(import.report.calls_seen(),
                static_cast<uint64_t>(std::distance(
                    std::sregex_iterator(text.begin(), text.end(), call), std::sregex_iterator())))
          << entry.path();
      EXPECT_EQ(import.report.lines_read(),
                static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')));
      EXPECT_EQ(import.report.files[0].bytes_read, text.size());
      EXPECT_EQ(import.trace.has_value(), !diagnostics.HasErrors());
      ExpectCallsAddUp(import.report);
    }
  }
  EXPECT_GE(files, 6);
}

TEST(NcclLogReferenceTest, SixteenRanksOfWhichEightAreLogged) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const std::string log = ReadFile(reference_dir + "/nccl-logs/nccl-2.27.5-16ranks-allreduce.log");
  NcclLogOptions options = Reconstruct();
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    options.rank_map.push_back({.host = "node0", .pid = 20000 + rank, .rank = rank});
  }
  const ImportResult result = Import(log, options);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.calls_seen(), 8u);
  EXPECT_EQ(result.import.report.calls_imported(), 8u);
  EXPECT_EQ(result.import.report.calls_reconstructed, 8u);
  EXPECT_EQ(result.import.trace->rank_count, 16u);
  for (size_t rank = 0; rank < result.import.trace->operations.size(); ++rank) {
    const auto& operations = result.import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(operations.size(), 1u);
    EXPECT_EQ(operations[0].kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(operations[0].count, 1u);
    EXPECT_EQ(operations[0].datatype, Datatype::kFloat32);
    EXPECT_EQ(operations[0].algorithm, Algorithm::kTree);
    EXPECT_EQ(operations[0].protocol, Protocol::kLl);
  }
  options.missing_ranks = NcclLogOptions::MissingRanks::kRefuse;
  EXPECT_THAT(Import(log, options).diagnostics.ToString(),
              HasSubstr("the logs hold no process known to be rank 8 to 15"));
  // Without the map one Init line still places one rank, and the others repeat it.
  const ImportResult unmapped = Import(log, Reconstruct());
  ASSERT_TRUE(unmapped.import.trace);
  EXPECT_EQ(unmapped.import.report.calls_imported(), 1u);
  EXPECT_EQ(unmapped.import.report.DroppedFor(CallDropReason::kUnknownRank).count, 7u);
  EXPECT_EQ(unmapped.import.trace->operations[GlobalRank{5}][0].source_line, 13u);
}

TEST(NcclLogReferenceTest, TwoDevicesOfOneProcess) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const ImportResult result =
      Import(ReadFile(reference_dir + "/nccl-logs/nccl-2019-tensorflow-2ranks-one-process.log"));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.calls_imported(), 6u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][2].count, 386560u);
}

TEST(NcclLogReferenceTest, LogsOfRanksThatBeginAtDifferentCalls) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const ImportResult result =
      Import(ReadFile(reference_dir + "/nccl-logs/torch-tp2-allgather-reducescatter.log"));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  // opCounts e and f are on both ranks, d and 10 and 11 on one.
  EXPECT_EQ(result.import.report.calls_imported(), 4u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 3u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][0].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][1].kind, CollectiveKind::kAllGather);
}

TEST(NcclLogReferenceTest, InterleavedLinesWithoutRanks) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const ImportResult result =
      Import(ReadFile(reference_dir + "/nccl-logs/nccl-2018-8ranks-broadcast-interleaved.log"),
             Reconstruct());
  EXPECT_EQ(result.import.report.calls_seen(), 6u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kUnknownProcess).count, 1u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kUnknownRank).count, 5u);
  EXPECT_THAT(result.diagnostics.ToString(), HasSubstr("a rank_map says"));
}

TEST(NcclLogReferenceTest, RcclsForms) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  const ImportResult result =
      Import(ReadFile(reference_dir + "/nccl-logs/rccl-variants.log"), Reconstruct());
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->rank_count, 256u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kTruncatedLine).count, 1u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kUnknownRank).count, 1u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{170}][0].source_line, 3u);
  EXPECT_EQ(result.import.report.ranks_reconstructed, 255u);
}

}  // namespace
}  // namespace railyard::testing
