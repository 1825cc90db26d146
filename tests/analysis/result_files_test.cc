// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/result_files.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/writers/summary.h"
#include "simulator/diagnostics/diagnostics.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeUpRun;
using testing::ReadFile;
using testing::ScratchDirectory;

std::vector<std::string> Entries(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

TEST(PrepareResultDirectoryTest, AcceptsWhatIsAbsentOrEmptyAndWritesNothing) {
  const ScratchDirectory scratch;
  EXPECT_FALSE(PrepareResultDirectory(scratch / "absent/deeper"));
  EXPECT_THAT(Entries(scratch.path()), IsEmpty());
  fs::create_directory(scratch / "empty");
  EXPECT_FALSE(PrepareResultDirectory(scratch / "empty"));
  EXPECT_FALSE(PrepareResultDirectory(scratch / "empty/"));
}

TEST(PrepareResultDirectoryTest, AcceptsAnEarlierResult) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "out", MadeUpRun());
  EXPECT_FALSE(PrepareResultDirectory(scratch / "out"));
}

TEST(PrepareResultDirectoryTest, RefusesFilesThatAreNotOfAResult) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "out", MadeUpRun());
  WriteText(scratch / "out/thesis.tex", "years of work");
  EXPECT_EQ(PrepareResultDirectory(scratch / "out"),
            "refusing to replace " + (scratch / "out") +
                ": it holds thesis.tex, which is not a result of railyard");
}

TEST(PrepareResultDirectoryTest, RefusesTheSummaryOfSomethingElse) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "out");
  const std::string refusal = "refusing to replace " + (scratch / "out") +
                              ": it is not empty and holds no complete result of railyard";
  for (const char* text : {"", "{}", "[1]", "{\"schema_version\": 1}", "{\"schema_version\": 1,"}) {
    WriteText(scratch / "out/summary.json", text);
    EXPECT_EQ(PrepareResultDirectory(scratch / "out"), refusal) << text;
  }
  fs::remove(scratch / "out/summary.json");
  WriteText(scratch / "out/pairs.csv", "a,b\n");
  EXPECT_EQ(PrepareResultDirectory(scratch / "out"), refusal);
}

TEST(PrepareResultDirectoryTest, RefusesAFile) {
  const ScratchDirectory scratch;
  WriteText(scratch / "file", "");
  EXPECT_EQ(PrepareResultDirectory(scratch / "file"),
            "refusing to replace " + (scratch / "file") + ": it is not a directory");
}

TEST(PrepareResultDirectoryTest, RefusesAMountPoint) {
  if (!Entries("/sys").empty()) {
    EXPECT_THAT(*PrepareResultDirectory("/sys"), HasSubstr("refusing to replace /sys"));
  }
  EXPECT_THAT(*PrepareResultDirectory("/"), HasSubstr("refusing to replace /"));
}

TEST(PrepareResultDirectoryTest, SaysBeforeTheRunThatTheDirectoryCannotBeMade) {
  const ScratchDirectory scratch;
  WriteText(scratch / "file", "");
  try {
    PrepareResultDirectory(scratch / "file/out");
    FAIL() << "a directory below a file was accepted";
  } catch (const EnvironmentError& error) {
    EXPECT_EQ(error.what(), "cannot create " + (scratch / "file/out") + ": Not a directory");
  }
}

TEST(WriteResultsTest, WritesEveryFileAndNothingBeside) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "a/b/out", MadeUpRun(),
               {{.name = "import_report.txt", .content = "calls seen 12\n"}});
  EXPECT_THAT(Entries(scratch / "a/b"), ElementsAre("out"));
  EXPECT_THAT(Entries(scratch / "a/b/out"),
              ElementsAre("breakdown.csv", "collectives.csv", "import_report.txt", "in_network.csv",
                          "iteration_pairs.csv", "link_series.csv", "links.csv", "pairs.csv",
                          "queue_series.csv", "results.sqlite", "series.csv", "summary.json",
                          "traffic.csv", "transfers.csv"));
  EXPECT_EQ(ReadFile(scratch / "a/b/out/summary.json"), SummaryJson(MadeUpRun()));
  EXPECT_EQ(ReadFile(scratch / "a/b/out/import_report.txt"), "calls seen 12\n");
}

TEST(WriteResultsTest, ReplacesAnEarlierResultWhole) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "out", MadeUpRun(), {{.name = "import_report.txt", .content = "old"}});
  RunResult later = MadeUpRun();
  later.seed = 8;
  WriteResults(scratch / "out/", later);
  EXPECT_EQ(ReadFile(scratch / "out/summary.json"), SummaryJson(later));
  EXPECT_FALSE(fs::exists(scratch / "out/import_report.txt"));
  EXPECT_THAT(Entries(scratch.path()), ElementsAre("out"));
}

TEST(WriteResultsTest, FollowsASymbolicLink) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "real");
  fs::create_symlink(scratch / "real", scratch / "link");
  WriteResults(scratch / "link", MadeUpRun());
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_TRUE(fs::exists(scratch / "real/summary.json"));
}

TEST(WriteResultsTest, NeverReplacesWhatIsNotAResult) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch / "out");
  WriteText(scratch / "out/thesis.tex", "years of work");
  EXPECT_THROW(WriteResults(scratch / "out", MadeUpRun()), EnvironmentError);
  EXPECT_EQ(ReadFile(scratch / "out/thesis.tex"), "years of work");
  EXPECT_THAT(Entries(scratch.path()), ElementsAre("out"));
}

TEST(WriteResultsTest, LeavesNothingBelowAFile) {
  const ScratchDirectory scratch;
  WriteText(scratch / "file", "");
  EXPECT_THROW(WriteResults(scratch / "file/out", MadeUpRun()), EnvironmentError);
  EXPECT_THAT(Entries(scratch.path()), ElementsAre("file"));
}

// Writes fail past `bytes` with "File too large", for root as well.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &earlier_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = earlier_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &earlier_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit earlier_{};
};

TEST(WriteResultsTest, LeavesNothingWhenTheDiskFillsUpInAnyFile) {
  // 0 stops the first file, 8,192 only the database, which is larger than the texts.
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{8192}}) {
    const ScratchDirectory scratch;
    std::string what;
    try {
      const FileSizeLimit limit(bytes);
      WriteResults(scratch / "new/out", MadeUpRun());
    } catch (const EnvironmentError& error) {
      what = error.what();
    }
    EXPECT_THAT(what, HasSubstr("cannot write " + (scratch / "new/")));
    EXPECT_THAT(what, HasSubstr(bytes == 0 ? "summary.json: File too large" : "results.sqlite: "));
    EXPECT_THAT(Entries(scratch.path()), IsEmpty());
  }
}

TEST(WriteResultsTest, KeepsTheEarlierResultWhenTheDiskFillsUp) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "out", MadeUpRun());
  RunResult later = MadeUpRun();
  later.seed = 8;
  {
    const FileSizeLimit limit(8192);
    EXPECT_THROW(WriteResults(scratch / "out", later), EnvironmentError);
  }
  EXPECT_EQ(ReadFile(scratch / "out/summary.json"), SummaryJson(MadeUpRun()));
  EXPECT_THAT(Entries(scratch.path()), ElementsAre("out"));
}

TEST(RemoveLeftoversTest, RemovesWhatNoProcessHolds) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "out", MadeUpRun());
  for (const char* name : {".railyard-1-0", ".railyard-1-1", ".railyard-1-0.earlier", ".railyard-1",
                           ".railyard-a-1", ".railyard-1-2-3"}) {
    fs::create_directories(scratch / name + "/out");
  }
  WriteText(scratch / ".railyard-2-0", "a file");
  const int held = open((scratch / ".railyard-1-1").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  EXPECT_THAT(RemoveLeftovers(scratch / "out"), IsEmpty());
  EXPECT_THAT(Entries(scratch.path()),
              ElementsAre(".railyard-1", ".railyard-1-0.earlier", ".railyard-1-1",
                          ".railyard-1-2-3", ".railyard-2-0", ".railyard-a-1", "out"));
  close(held);
  EXPECT_THAT(RemoveLeftovers(scratch / "absent/deeper"), IsEmpty());
  EXPECT_THAT(RemoveLeftovers(scratch / "out"), IsEmpty());
  EXPECT_FALSE(fs::exists(scratch / ".railyard-1-1"));
}

// A directory that another run lists as left over may be gone before that run removes it, and the
// next attempt's be there.
TEST(RemoveLeftoversTest, LeavesAloneWhatIsWrittenMeanwhile) {
  const ScratchDirectory scratch;
  std::atomic<bool> written = false;
  std::vector<std::string> failures;
  std::thread other([&] {
    while (!written) {
      for (std::string& failure : RemoveLeftovers(scratch / "out")) {
        failures.push_back(std::move(failure));
      }
    }
  });
  std::vector<std::string> expected;
  for (int run = 0; run < 100; ++run) {
    EXPECT_EQ(PrepareResultDirectory(scratch / "out"), std::nullopt);
    EXPECT_NO_THROW(WriteResults(scratch / "out", MadeUpRun(), {}, Sync::kLater));
    if (run == 0) expected = Entries(scratch / "out");
    EXPECT_EQ(Entries(scratch / "out"), expected);
  }
  written = true;
  other.join();
  EXPECT_THAT(failures, IsEmpty());
  EXPECT_THAT(expected, Contains("summary.json"));
}

TEST(WriteResultsDeathTest, StopsAtAnExtraFileThatWouldMakeTheResultForeign) {
  const ScratchDirectory scratch;
  EXPECT_DEATH(WriteResults(scratch / "out", MadeUpRun(), {{.name = "x.txt", .content = ""}}),
               "not a file of a result: x.txt");
}

}  // namespace
}  // namespace railyard
