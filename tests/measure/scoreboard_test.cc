// SPDX-License-Identifier: GPL-2.0-only
// Computes scores of rows whose errors are known.
#include "simulator/measure/scoreboard.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

FidelityRow Row(const std::string& source, uint64_t bytes, double measured_us, double simulated_us,
                const std::string& replayed = "RING/LL", int line = 2) {
  FidelityRow row;
  row.measured.source_id = source;
  row.measured.collective = "all_reduce";
  row.measured.nodes = 1;
  row.measured.gpus_per_node = 8;
  row.measured.gpu = "H100-SXM5-80GB";
  row.measured.nics = "8x400 IB";
  row.measured.nccl_version = "2.27.5";
  row.measured.bytes = bytes;
  row.measured.time_us = measured_us;
  row.measured.line = line;
  row.simulated_us = simulated_us;
  row.replayed = replayed;
  return row;
}

class TimesFile {
 public:
  explicit TimesFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              (std::string("railyard_times_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TimesFile() { std::filesystem::remove(path_); }
  TimesFile(const TimesFile&) = delete;
  TimesFile& operator=(const TimesFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr const char* kHeader =
    "simulator,source_id,collective,nodes,gpus_per_node,bytes,time_us\n";

// Errors of 10, -20 and 30 % of one class, and one of another protocol.
TEST(ScoreboardTest, ScoresAreByMachineCollectiveProtocolAndSize) {
  FidelityResult result;
  result.rows = {Row("a", 1 << 20, 100, 110), Row("a", 2 << 20, 100, 80, "RING/LL", 3),
                 Row("a", 4 << 20, 100, 130, "RING/LL", 4),
                 Row("a", 8 << 20, 100, 101, "NVLS/SIMPLE", 5)};
  const Scoreboard board = MakeScoreboard(result, {});
  ASSERT_EQ(board.cells.size(), 2u);
  EXPECT_EQ(board.cells[0].protocol, "LL");
  EXPECT_EQ(board.cells[0].sizes, "1 MiB to 16 MiB");
  ASSERT_EQ(board.cells[0].scores.size(), 1u);
  EXPECT_EQ(board.cells[0].scores[0].rows, 3u);
  EXPECT_NEAR(board.cells[0].scores[0].median_abs_error, 0.2, 1e-9);
  EXPECT_NEAR(board.cells[0].scores[0].median_error, 0.1, 1e-9);
  EXPECT_EQ(board.cells[0].spread, std::nullopt);  // one table
  EXPECT_EQ(board.cells[1].protocol, "SIMPLE");
  EXPECT_EQ(board.totals[0].rows, 4u);
}

// Two tables of a kind of machine: 100 and 108 us, 200 and 220 us; in and out of place count once.
TEST(ScoreboardTest, TheSpreadIsBetweenTablesThatAreModelledAlike) {
  FidelityResult result;
  result.rows = {Row("a", 1 << 20, 100, 100),
                 Row("b", 1 << 20, 108, 100),
                 Row("b", 1 << 20, 108, 100, "RING/LL", 3),
                 Row("a", 2 << 20, 200, 200),
                 Row("b", 2 << 20, 220, 200),
                 Row("a", 4 << 20, 400, 400)};
  const Scoreboard board = MakeScoreboard(result, {});
  ASSERT_EQ(board.cells.size(), 1u);
  ASSERT_TRUE(board.cells[0].spread.has_value());
  EXPECT_NEAR(*board.cells[0].spread, 0.09, 1e-9);  // the median of 8 and 10 %
  EXPECT_EQ(board.cells[0].sources, 2u);
  for (const ScoredRow& row : board.rows) {
    EXPECT_EQ(row.spread.has_value(), row.row->measured.bytes < 4u << 20);
  }
}

TEST(ScoreboardTest, OtherSimulatorsStandBeside) {
  FidelityResult result;
  result.rows = {Row("a", 1 << 20, 100, 110), Row("a", 2 << 20, 100, 110, "RING/LL", 3)};
  result.rows[1].input = 1;
  std::vector<MeasuredRow> measured = {result.rows[0].measured, result.rows[1].measured};
  const TimesFile file(std::string(kHeader) + "astra,a,all_reduce,1,8,1048576,150\n");
  Diagnostics diagnostics;
  const std::vector<OtherTime> others = ReadOtherTimes(file.path(), measured, diagnostics);
  EXPECT_EQ(diagnostics.ToString(), "");
  const Scoreboard board = MakeScoreboard(result, others);
  ASSERT_EQ(board.totals.size(), 2u);
  EXPECT_EQ(board.totals[0].simulator, kThisSimulator);
  EXPECT_EQ(board.totals[0].rows, 2u);
  EXPECT_EQ(board.totals[1].simulator, "astra");
  EXPECT_EQ(board.totals[1].rows, 1u);
  EXPECT_NEAR(board.totals[1].median_error, 0.5, 1e-9);
}

TEST(OtherTimesTest, EveryMistakeIsAFindingAtItsPlace) {
  const std::vector<MeasuredRow> measured = {Row("a", 1 << 20, 100, 100).measured};
  const auto findings = [&](const std::string& text) {
    const TimesFile file(text);
    Diagnostics diagnostics;
    EXPECT_TRUE(ReadOtherTimes(file.path(), measured, diagnostics).size() < 2);
    return diagnostics.ToString();
  };
  EXPECT_THAT(findings(""), HasSubstr("1:1: error: the file is empty"));
  EXPECT_THAT(findings("a,b\n"), HasSubstr("1:1: error: not the column names"));
  const std::string header = kHeader;
  EXPECT_THAT(findings(header + "x,a,all_reduce,1,8,1048576\n"), HasSubstr("2:1: error: 6 fields"));
  EXPECT_THAT(findings(header + "x,b,all_reduce,1,8,1048576,5\n"),
              HasSubstr("2:3: error: source_id: nothing was measured of \"b\" all_reduce, 1 x 8 "
                        "GPUs, 1048576 bytes (expected a row of MEASURED)"));
  EXPECT_THAT(findings(header + "x,a,all_reduce,1,8,1M,5\n"),
              HasSubstr("2:20: error: bytes: \"1M\" (expected a whole number)"));
  EXPECT_THAT(findings(header + "x,a,all_reduce,1,8,1048576,-5\n"),
              HasSubstr("2:28: error: time_us: \"-5\" (expected microseconds"));
  EXPECT_THAT(findings(header + "railyard,a,all_reduce,1,8,1048576,5\n"),
              HasSubstr("2:1: error: simulator: \"railyard\" (expected the name of another"));
  EXPECT_THAT(findings(header + "x,a,all_reduce,1,8,1048576,5\nx,a,all_reduce,1,8,1048576,6\n"),
              HasSubstr("3:1: error: simulator: \"x\" has a time for this row already"));
  EXPECT_THAT(findings(header + "x,\"a,all_reduce\n"), HasSubstr("a quote is not closed"));
}

// Two tables have rows of one source, collective, size and line, of different machines. Each has
// the other simulator's time of its own machine: errors of 2 and 100 %.
TEST(ScoreboardTest, RowsOfDifferentFilesAreSeparate) {
  FidelityRow eight = Row("a", 1 << 20, 100, 110);
  FidelityRow four = Row("a", 1 << 20, 50, 55);
  four.measured.gpus_per_node = 4;
  four.input = 1;
  FidelityResult result;
  result.rows = {eight, four};
  const std::vector<OtherTime> others = {{.simulator = "other", .measured = 0, .time_us = 102},
                                         {.simulator = "other", .measured = 1, .time_us = 100}};
  const Scoreboard board = MakeScoreboard(result, others);
  std::vector<double> errors;
  for (const ScoredRow& row : board.rows) {
    if (row.simulator == "other") errors.push_back(row.simulated_us / row.row->measured.time_us);
  }
  EXPECT_THAT(errors, ::testing::UnorderedElementsAre(1.02, 2.0));
}

}  // namespace
}  // namespace railyard
