// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/sqlite_writer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "simulator/diagnostics/diagnostics.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeUpRun;
using testing::ScratchDirectory;

class DatabaseTest : public ::testing::Test {
 protected:
  ~DatabaseTest() override { sqlite3_close(database_); }

  void Write(const std::vector<ResultTable>& tables) {
    WriteDatabase(scratch_ / "results.sqlite", tables);
    const std::string path = scratch_ / "results.sqlite";
    ASSERT_EQ(sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  }

  // The cells of all rows, "NULL" for null.
  std::vector<std::string> Query(const std::string& sql) {
    std::vector<std::string> cells;
    char* error = nullptr;
    const auto add_row = [](void* context, int count, char** values, char**) {
      for (int i = 0; i < count; ++i) {
        static_cast<std::vector<std::string>*>(context)->emplace_back(
            values[i] == nullptr ? "NULL" : values[i]);
      }
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(database_, sql.c_str(), add_row, &cells, &error), SQLITE_OK)
        << (error == nullptr ? "" : error);
    sqlite3_free(error);
    return cells;
  }

  ScratchDirectory scratch_;
  RunResult run_ = MadeUpRun();
  sqlite3* database_ = nullptr;
};

TEST_F(DatabaseTest, HoldsTheCollectives) {
  Write({CollectivesTable(run_)});
  EXPECT_THAT(Query("SELECT collective_index, kind, duration_ps, stretch, hit_by_fault, source "
                    "FROM collectives WHERE stretch > 1"),
              ElementsAre("1", "AllReduce", "10000000000", "4.0", "1", "job.log:7"));
  EXPECT_THAT(Query("SELECT typeof(duration_ps), typeof(busbw_GBps) FROM collectives LIMIT 1"),
              ElementsAre("integer", "real"));
}

TEST_F(DatabaseTest, HoldsNullForWhatDidNotHappen) {
  run_.collectives[0].completed = false;
  run_.faults[0].time_to_recover_ps = -1;
  Write({CollectivesTable(run_), FaultsTable(run_)});
  EXPECT_THAT(Query("SELECT end_ps, stretch FROM collectives LIMIT 1"),
              ElementsAre("NULL", "NULL"));
  EXPECT_THAT(Query("SELECT time_to_recover_ps FROM faults"), ElementsAre("NULL"));
}

TEST_F(DatabaseTest, TiersAreSumsOverItsLinks) {
  Write({LinksTable(run_)});
  EXPECT_THAT(
      Query("SELECT tier, sum(payload_bytes), sum(retransmitted_bytes) FROM links "
            "GROUP BY tier ORDER BY tier"),
      ElementsAre("LEAF_SPINE", "0", "0", "NIC_LEAF", "2000", "300", "NVLINK", "6000", "0"));
}

TEST_F(DatabaseTest, HoldsPairsDropsFaultsAndNotes) {
  Write(
      {PairsTable(run_), DropsTable(run_), FaultsTable(run_), WaitsTable(run_), NotesTable(run_)});
  EXPECT_THAT(Query("SELECT * FROM waits"), ElementsAre("0", "2", "3", "1", "6000000000"));
  EXPECT_THAT(Query("SELECT count(*), sum(payload_bytes) FROM pairs"), ElementsAre("3", "4000"));
  EXPECT_THAT(Query("SELECT * FROM drops"), ElementsAre("LINK_DOWN", "3", "300"));
  EXPECT_THAT(Query("SELECT * FROM faults"),
              ElementsAre("flap", "LINK_DOWN", "server0/nic0--leaf0", "3000000000", "4000000000",
                          "1", "3", "300", "1", "4", "100000000", "2000000", "9000000000",
                          "6000000000", "9000000000"));
  EXPECT_THAT(Query("SELECT note FROM notes"), ElementsAre("Half of the ranks are reconstructed."));
}

TEST_F(DatabaseTest, HoldsTheFiguresOfTheRunByKey) {
  run_.seed = UINT64_MAX;
  Write({RunFiguresTable(run_)});
  EXPECT_THAT(Query("SELECT value FROM run WHERE key = 'simulated_time_ps'"),
              ElementsAre("20000000000"));
  EXPECT_THAT(Query("SELECT value FROM run WHERE key = 'seed'"),
              ElementsAre("18446744073709551615"));
  EXPECT_THAT(Query("SELECT value FROM run WHERE key = 'status'"), ElementsAre("COMPLETED"));
}

TEST_F(DatabaseTest, HoldsTheFiguresOfTheSummaryThatAreInNoList) {
  Write({RunFiguresTable(run_)});
  const auto value = [this](const std::string& key) {
    return Query("SELECT value FROM run WHERE key = '" + key + "'");
  };
  EXPECT_THAT(value("collectives.stretch.max"), ElementsAre("4.0"));
  EXPECT_THAT(value("short_form_share"), ElementsAre("0.25"));
  EXPECT_THAT(value("transport.timeouts"), value("timeouts"));
  EXPECT_THAT(value("conservation.ok"), ElementsAre("1"));
  EXPECT_THAT(value("division"), ElementsAre("NULL"));
  EXPECT_THAT(Query("SELECT key FROM run WHERE key GLOB 'faults*' OR key GLOB '*.N.*'"),
              ElementsAre());
  EXPECT_THAT(Query("SELECT key FROM run GROUP BY key HAVING count(*) > 1"), ElementsAre());
}

TEST_F(DatabaseTest, KeepsNumbersThatNeedThe64thBit) {
  run_.traffic.message_sizes = {{.bytes = UINT64_MAX, .count = 1}};
  Write({RunFiguresTable(run_)});
  EXPECT_THAT(Query("SELECT value FROM run WHERE key = 'traffic.message_bytes.max'"),
              ElementsAre("18446744073709551615"));
}

// A study's axes are columns, whatever their names are.
TEST_F(DatabaseTest, ColumnsMayHaveAnyName) {
  std::vector<ResultColumn> columns;
  for (const char* name : {"size", "8KiB", "0", "select", "a b", "a\"b", "."}) {
    columns.push_back({.name = name, .type = ColumnType::kInteger});
  }
  Write({{.name = "points",
          .columns = columns,
          .row_count = 1,
          .append_row = [&](size_t /*row*/, std::vector<Cell>& cells) {
            for (int64_t at = 0; at < std::ssize(columns); ++at) cells.emplace_back(at);
          }}});
  EXPECT_THAT(
      Query("SELECT size, \"8KiB\", \"0\", \"select\", \"a b\", \"a\"\"b\", \".\" FROM points"),
      ElementsAre("0", "1", "2", "3", "4", "5", "6"));
}

TEST_F(DatabaseTest, NamesTheFileItCannotWrite) {
  try {
    WriteDatabase(scratch_ / "absent/results.sqlite", {DropsTable(run_)});
    FAIL() << "wrote into a directory that does not exist";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write " + (scratch_ / "absent/results.sqlite")));
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
}

}  // namespace
}  // namespace railyard
