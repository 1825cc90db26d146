// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nsys/nsys_reader.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Pair;

// An export with the tables that the reader needs.
class Export {
 public:
  explicit Export(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    Run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)");
    Run("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, globalTid INTEGER, "
        "textId INTEGER, binaryData TEXT)");
    Run("CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (schemaId INTEGER, name TEXT, type INTEGER, "
        "offset INTEGER)");
    // As NCCL 2.25 registers them.
    Run("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 'NCCL communicator ID', 18, NULL), "
        "(1, 'No. of ranks', 5, 8), (1, 'Rank', 5, 12), (2, 'NCCL communicator ID', 18, NULL), "
        "(2, 'Message size [bytes]', 22, 8), (3, 'NCCL communicator ID', 18, NULL), "
        "(3, 'Message size [bytes]', 22, 8), (3, 'Peer rank', 5, 16)");
  }
  ~Export() { sqlite3_close(database_); }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  void Run(const std::string& sql) {
    ASSERT_EQ(sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
  }
  // `fields`: the payload's 64-bit words.
  void Range(int64_t start, uint64_t process, const std::string& name, uint32_t schema,
             const std::vector<uint64_t>& fields) {
    std::string payload(32, '\0');
    payload[8] = static_cast<char>(schema);
    for (const uint64_t field : fields) {
      for (int i = 0; i < 8; ++i) payload += static_cast<char>(field >> (8 * i) & 0xff);
    }
    std::string hex;
    for (const char c : payload) {
      constexpr char kDigits[] = "0123456789abcdef";
      hex += kDigits[static_cast<unsigned char>(c) >> 4];
      hex += kDigits[static_cast<unsigned char>(c) & 15];
    }
    Run("INSERT INTO NVTX_EVENTS VALUES (" + std::to_string(start) + ", NULL, '" + name + "', " +
        std::to_string(process << 24) + ", NULL, " + (schema == 0 ? "NULL" : "x'" + hex + "'") +
        ")");
  }

 private:
  sqlite3* database_ = nullptr;
};

std::string BytesOf(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

TEST(NsysReaderTest, PayloadsSayRanksAndSizes) {
  ImportedFiles files;
  const std::string path = files.Write("job.sqlite", "");
  {
    Export made(path);
    for (uint64_t rank = 0; rank < 2; ++rank) {
      const uint64_t process = 100 + rank;
      const auto start = static_cast<int64_t>(rank);
      made.Range(start, process, "ncclCommInitRank", 1, {0xabcd, 2 | rank << 32});
      made.Range(start + 10, process, "ncclAllReduce", 2, {0xabcd, 4096});
      made.Range(start + 20, process, "ncclGroupStart", 0, {});
      made.Range(start + 30, process, "ncclSend", 3, {0xabcd, 64, 1 - rank});
      made.Range(start + 40, process, "ncclRecv", 3, {0xabcd, 64, 1 - rank});
      made.Range(start + 50, process, "ncclGroupEnd", 0, {});
    }
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
    Export made(path);
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
  { Export made(path); }
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
