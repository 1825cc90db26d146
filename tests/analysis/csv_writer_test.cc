// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/csv_writer.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/metrics/run_metrics.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/units/units.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::MadeUpRun;
using testing::ReadFile;
using testing::ScratchDirectory;

// RFC 4180, written independently of the writer.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        rows.back().back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        rows.back().back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      rows.back().emplace_back();
    } else if (c == '\n') {
      rows.emplace_back(1);
    } else {
      rows.back().back() += c;
    }
  }
  rows.pop_back();  // after the last line's end
  return rows;
}

std::vector<std::vector<std::string>> WriteAndParse(const ResultTable& table) {
  const ScratchDirectory scratch;
  OutputFile file(scratch / "table.csv");
  WriteCsv(table, file);
  file.Close();
  return ParseCsv(ReadFile(scratch / "table.csv"));
}

// Rows as column name → text.
std::vector<std::map<std::string, std::string>> Records(const ResultTable& table) {
  const auto rows = WriteAndParse(table);
  std::vector<std::map<std::string, std::string>> records;
  for (size_t row = 1; row < rows.size(); ++row) {
    EXPECT_EQ(rows[row].size(), rows[0].size());
    auto& record = records.emplace_back();
    for (size_t i = 0; i < rows[row].size(); ++i) record[rows[0][i]] = rows[row][i];
  }
  return records;
}

TEST(CollectivesCsvTest, HasOneRowPerCollectiveWithItsFigures) {
  const RunResult run = MadeUpRun();
  const auto records = Records(CollectivesTable(run));
  ASSERT_EQ(records.size(), 3u);
  auto second = records[1];
  EXPECT_EQ(second["collective_index"], "1");
  EXPECT_EQ(second["kind"], "AllReduce");
  EXPECT_EQ(second["communicator"], "world");
  EXPECT_EQ(second["ranks"], "4");
  EXPECT_EQ(second["bytes"], "100000000");
  EXPECT_EQ(second["logged"], "TREE/LL");
  EXPECT_EQ(second["replayed"], "RING/SIMPLE");
  EXPECT_EQ(second["start_ps"], "2000000000");
  EXPECT_EQ(second["last_start_ps"], "2002000000");
  EXPECT_EQ(second["end_ps"], "12000000000");
  EXPECT_EQ(second["duration_ps"], "10000000000");
  EXPECT_EQ(second["wait_ps"], "2000000");
  EXPECT_EQ(second["bound_ps"], "500000000");
  EXPECT_EQ(second["slowdown"], "20");
  EXPECT_EQ(second["busbw_GBps"], "15");
  EXPECT_EQ(second["baseline_duration_ps"], "2500000000");
  EXPECT_EQ(second["stretch"], "4");
  EXPECT_EQ(second["completed"], "true");
  EXPECT_EQ(second["hit_by_fault"], "true");
  EXPECT_EQ(second["added_queueing_ps"], "-500000000");
  EXPECT_EQ(second["added_retransmission_ps"], "1000000000");
  EXPECT_EQ(second["added_timeout_ps"], "5000000000");
  EXPECT_EQ(second["added_rerouting_ps"], "250000000");
  EXPECT_EQ(second["added_slow_peer_ps"], "500000000");
  EXPECT_EQ(second["added_other_ps"], "1250000000");
  EXPECT_EQ(second["held_up_by_source"], "2");
  EXPECT_EQ(second["held_up_by_destination"], "3");
  EXPECT_EQ(second["source"], "job.log:7");
  auto third = records[2];
  EXPECT_EQ(third["logged"], "");
  EXPECT_EQ(third["held_up_by_source"], "");
  EXPECT_EQ(third["source"], "job \"a\", part 1.log:9");
}

TEST(CollectivesCsvTest, LeavesEmptyWhatDidNotHappen) {
  RunResult run = MadeUpRun();
  CollectiveResult& cut_off = run.collectives[1];
  cut_off.completed = false;
  cut_off.last_end_ps = kNeverPs;
  cut_off.last_start_ps = kNeverPs;
  auto record = Records(CollectivesTable(run))[1];
  EXPECT_EQ(record["start_ps"], "2000000000");
  for (const char* column :
       {"last_start_ps", "end_ps", "duration_ps", "wait_ps", "slowdown", "busbw_GBps", "stretch"}) {
    EXPECT_EQ(record[column], "") << column;
  }
  EXPECT_EQ(record["completed"], "false");
}

TEST(CollectivesCsvTest, HasStretchOneButNoBaselineWithoutFaults) {
  const RunResult run = testing::MadeUpRunWithoutFaults();
  for (auto& record : Records(CollectivesTable(run))) {
    EXPECT_EQ(record["stretch"], "1");
    EXPECT_EQ(record["baseline_duration_ps"], "");
  }
}

TEST(PairsCsvTest, NamesTheTiersCrossed) {
  const RunResult run = MadeUpRun();
  const auto rows = WriteAndParse(PairsTable(run));
  EXPECT_THAT(rows[0],
              ElementsAre("source_gpu", "destination_gpu", "tiers_crossed", "payload_bytes"));
  EXPECT_THAT(rows[2], ElementsAre("1", "2", "HOST+NIC_LEAF", "1000"));
}

TEST(LinksCsvTest, SumsToTheTiersOfTheSummary) {
  const RunResult run = MadeUpRun();
  std::map<std::string, uint64_t> payload_bytes;
  std::map<std::string, uint64_t> header_bytes;
  for (auto& record : Records(LinksTable(run))) {
    payload_bytes[record["tier"]] += std::stoull(record["payload_bytes"]);
    header_bytes[record["tier"]] += std::stoull(record["header_bytes"]);
  }
  const auto tiers = TotalsByTier(run);
  EXPECT_EQ(tiers.size(), payload_bytes.size());
  for (const TierTotals& tier : tiers) {
    EXPECT_EQ(payload_bytes[tier.tier], tier.payload_bytes);
    EXPECT_EQ(header_bytes[tier.tier], tier.header_bytes);
  }
}

TEST(OutputFileTest, NamesTheFileAndTheReasonOnAFullDisk) {
  OutputFile file("/dev/full");
  file.Write("text");
  try {
    file.Close();
    FAIL() << "a full disk went unnoticed";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cannot write /dev/full: No space left on device");
  }
}

TEST(OutputFileTest, NoticesAFullDiskWhileWriting) {
  OutputFile file("/dev/full");
  EXPECT_THROW(file.Write(std::string(1'000'000, 'x')), EnvironmentError);
}

TEST(OutputFileTest, NamesTheFileItCannotCreate) {
  try {
    const OutputFile file("/no/such/directory/file");
    FAIL() << "created a file in a directory that does not exist";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "cannot create /no/such/directory/file: No such file or directory");
  }
}

TEST(OutputFileTest, WritesAllOfALongText) {
  const ScratchDirectory scratch;
  const std::string part(100'000, 'y');
  OutputFile file(scratch / "long");
  for (int i = 0; i < 20; ++i) file.Write(part);
  file.Close();
  EXPECT_EQ(ReadFile(scratch / "long").size(), 2'000'000u);
}

// A signal that comes while a file is being written: the file is there whole, or an earlier one
// still is, and no unfinished one.
TEST(OutputFileTest, ASignalLeavesNoUnfinishedFile) {
  const ScratchDirectory scratch;
  const auto write = [&](const std::string& name, bool is_closed) {
    {
      OutputFile file(scratch / name);
      file.Write("all of it");
      raise(SIGINT);
      if (is_closed) file.Close();
    }
    std::exit(0);
  };
  EXPECT_EXIT(write("whole", true), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EQ(ReadFile(scratch / "whole"), "all of it");
  EXPECT_EXIT(write("whole", false), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(write("none", false), ::testing::KilledBySignal(SIGINT), "");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "")) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, ElementsAre("whole"));
}

}  // namespace
}  // namespace railyard
