// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "tests/traces/nsys/nsys_file.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using testing::ImportedFiles;
using testing::NsysFile;
using ::testing::Pair;

std::string BytesOf(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(NsysReaderTest, PayloadsSayRanksAndSizes) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.AddTwoRanks();
  }
  const TraceImport& import = files.Import({path});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "nsys");
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(2, 8192));
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(2, 128));
  const auto& program = import.trace->operations[1];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].count, 4096u);
  EXPECT_NE(program[1].group, 0u);
  EXPECT_EQ(program[1].group, program[2].group);
  EXPECT_EQ(program[1].peer, 0u);
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(*import.trace, diagnostics).has_value()) << diagnostics.ToString();
}

// Two servers whose process drives two GPUs, each by a thread, as with nccl-tests -t 2.
TEST(NsysReaderTest, ThreadsOfAProcessAreRanks) {
  ImportedFiles files;
  std::vector<std::string> paths;
  for (uint64_t server = 0; server < 2; ++server) {
    paths.push_back(files.Write("server" + std::to_string(server) + ".sqlite", ""));
    NsysFile made(paths.back());
    for (const uint64_t thread : {1u, 2u}) {
      const uint64_t rank = 2 * server + thread - 1;
      const auto start = static_cast<int64_t>(thread);
      made.Range(start, 100, "ncclCommInitRank", 1, {0xabcd, 4 | rank << 32}, thread);
      made.Range(start + 10, 100, "ncclAllReduce", 2, {0xabcd, 4096}, thread);
    }
  }
  const TraceImport& import = files.Import(paths);
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 4u);
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(4, 16384));
  for (uint32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(import.trace->operations[rank].size(), 1u) << rank;
  }
}

// Nothing says which of its two ranks a call of the thread is.
TEST(NsysReaderTest, CallsOfAThreadOfSeveralRanksAreDropped) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    for (uint64_t rank = 0; rank < 2; ++rank) {
      made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(10, 100, "ncclAllReduce", 2, {0xabcd, 4096});
    }
  }
  const TraceImport& import = files.Import({path});
  EXPECT_FALSE(import.trace);
  EXPECT_EQ(import.report.calls_imported(), 0u);
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kUnknownRank).count, 2u);
  EXPECT_THAT(import.report.ToString(),
              HasSubstr("its thread is not one rank of communicator 0xabcd"));
}

// NCCL's first ranges with payloads have bytes and no communicator.
TEST(NsysReaderTest, RangesWithoutACommunicatorAreDroppedForThat) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.Run(
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (4, 'Message size [bytes]', 22, NULL)");
    made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 1});
    made.Range(10, 100, "ncclAllReduce", 4, {4096});
  }
  const TraceImport& import = files.Import({path});
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kAmbiguousCommunicator).count, 1u);
  EXPECT_THAT(import.report.ToString(), HasSubstr("do not name the communicator"));
}

TEST(NsysReaderTest, CallsThatNotAllRanksMakeAreDropped) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.AddTwoRanks();
    made.Range(100, 100, "ncclAllReduce", 2, {0xabcd, 64});
  }
  const TraceImport& import = files.Import({path});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 1u);
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(*import.trace, diagnostics).has_value()) << diagnostics.ToString();
}

// The profile of rank 0 of two: rank 1 gets its program.
TEST(NsysReaderTest, RanksWithoutAProfileAreReconstructed) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.Range(1, 100, "ncclCommInitRank", 1, {0xabcd, 2});
    made.Range(10, 100, "ncclAllReduce", 2, {0xabcd, 4096});
  }
  const TraceImport& import = files.Import({path});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->rank_count, 2u);
  EXPECT_EQ(import.trace->operations[1].size(), 1u);
}

// Members of a communicator that is complete need no order: 0, 1 and 3 of four.
TEST(NsysReaderTest, MembersOfACommunicatorMayBeAnyRanks) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    uint64_t member = 0;
    for (uint64_t rank = 0; rank < 4; ++rank) {
      made.Range(1, 100 + rank, "ncclCommInitRank", 1, {0xabcd, 4 | rank << 32});
      if (rank == 2) continue;
      made.Range(2, 100 + rank, "ncclCommInitRank", 1, {0xef, 3 | member++ << 32});
      made.Range(3, 100 + rank, "ncclAllReduce", 2, {0xef, 4096});
    }
  }
  const TraceImport& import = files.Import({path});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(files.Kind(CollectiveKind::kAllReduce), Pair(3, 12288));
  ASSERT_EQ(import.trace->communicators.size(), 1u);
  EXPECT_THAT(import.trace->communicators[0].ranks, ::testing::ElementsAre(0, 1, 3));
}

TEST(NsysReaderTest, ViewsAreNotRun) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    NsysFile made(path);
    made.Run("DROP TABLE NVTX_EVENTS");
    made.Run(
        "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL SELECT "
        "start + 1 FROM r) SELECT start, 'ncclSend' AS text, 1 AS textId, 1 AS globalTid FROM r");
  }
  files.Import({path});
  EXPECT_FALSE(files.import().trace);
  EXPECT_NE(files.findings(), "");
}

TEST(NsysReaderTest, DamagedDatabasesAreErrors) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  { NsysFile made(path); }
  std::string bytes = BytesOf(path);
  files.Import({files.Write("cut.sqlite", bytes.substr(0, 600))});
  EXPECT_FALSE(files.import().trace);
  files.Import({files.Write("head.sqlite", bytes.substr(0, 16))});
  EXPECT_FALSE(files.import().trace);
  for (size_t i = 100; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37);
  files.Import({files.Write("noise.sqlite", bytes)});
  EXPECT_FALSE(files.import().trace);
}

// sqlite3 mfu_2gpu_before.sqlite "SELECT count(*) FROM NVTX_EVENTS e JOIN StringIds s ON
//   s.id = e.textId WHERE s.value IN ('ncclSend', 'ncclRecv')"   264, every binaryData NULL
TEST(NsysReaderTest, ReferenceHasNoSizes) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  files.Import({reference_dir + "/traces/nsys/mfu_2gpu_before.sqlite.gz"});
  EXPECT_FALSE(files.import().trace);
  EXPECT_EQ(files.import().report.format, "nsys");
  EXPECT_EQ(files.Dropped(CallDropReason::kSizesNotRecorded), 264u);
  EXPECT_THAT(files.findings(), HasSubstr("264 sizes not recorded"));
}

}  // namespace
}  // namespace railyard
