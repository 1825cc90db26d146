// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

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
