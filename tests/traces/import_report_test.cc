// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/import_report.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ImportReportTest, EveryReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCallDropReasonCount; ++i) {
    const std::string_view name = CallDropReasonName(static_cast<CallDropReason>(i));
    EXPECT_NE(name, "?") << i;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(ImportReportTest, ListsWhatWasDroppedWithItsLines) {
  ImportReport report;
  report.format = "nccl-log";
  report.nccl_version = "2.27.5";
  report.files = {{.path = "a.log",
                   .bytes_read = 10,
                   .lines_read = 5,
                   .calls_seen = 3,
                   .calls_imported = 1,
                   .calls_dropped = 0}};
  report.Drop(CallDropReason::kZeroCount, 0, 3, "AllReduce");
  report.Drop(CallDropReason::kTruncatedLine, 0, 4, "no \"comm\"");
  report.assumed = {"the sky is up"};
  const std::string text = report.ToString();
  EXPECT_THAT(text, HasSubstr("Import of nccl-log, NCCL 2.27.5\n"));
  EXPECT_THAT(text, HasSubstr("calls seen: 3\ncalls imported: 1\ncalls dropped: 2\n"));
  EXPECT_THAT(text, HasSubstr("  a.log: 10 bytes, 5 lines, 3 calls seen, 1 imported, 2 dropped\n"));
  EXPECT_THAT(text, HasSubstr("  truncated line: 1\n    a.log:4: no \"comm\"\n"));
  EXPECT_THAT(text, HasSubstr("  count 0: 1\n    a.log:3: AllReduce\n"));
  EXPECT_THAT(text, HasSubstr("reconstructed: nothing\nassumed:\n  the sky is up\n"));
}

TEST(ImportReportTest, SaysByHowMuchClocksDiffer) {
  ImportReport report;
  EXPECT_THAT(report.ToString(), Not(HasSubstr("clocks")));
  EXPECT_THAT(report.ToJson(), Not(HasSubstr("clock_skew")));
  report.clock_skew = {.rank = 3, .other = 1, .ps = -1'500'000};
  EXPECT_THAT(report.ToString(), HasSubstr("clocks: rank 3 is 1.5 us behind rank 1\n"));
  EXPECT_THAT(report.ToJson(), HasSubstr(R"("clock_skew": {
    "rank": 3,
    "other": 1,
    "ps": -1500000
  },)"));
}

TEST(ImportReportTest, KeepsTheFirstLinesOfAReasonAndCountsAll) {
  ImportReport report;
  report.files = {{.path = "a.log"}};
  for (uint64_t line = 1; line <= 60; ++line) report.Drop(CallDropReason::kZeroCount, 0, line);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kZeroCount).count, 60u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kZeroCount).first_lines.size(), kReportedLinesMax);
  EXPECT_THAT(report.ToString(), HasSubstr("    a.log:50\n    and 10 more\n"));
}

TEST(ImportReportTest, IsWrittenAsItsText) {
  ImportReport report;
  report.format = "nccl-log";
  const std::string path = ::testing::TempDir() + "import_report_test.txt";
  WriteImportReport(path, report);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), report.ToString());
  std::filesystem::remove(path);
  EXPECT_THROW(WriteImportReport("/nonexistent/report.txt", report), EnvironmentError);
}

}  // namespace
}  // namespace railyard
