// SPDX-License-Identifier: GPL-2.0-only
#include "traces/reading/input_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A directory of its own; `Run` makes archives in it with the tools that users have.
class InputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) /
                 (std::string("input_files_test_") +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  void Write(const std::string& name, const std::string& content) const {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  void Run(const std::string& command) const {
    const std::string all = "cd '" + directory_.string() + "' && " + command;
    ASSERT_EQ(std::system(all.c_str()), 0) << command;
  }
  // Names below the directory, in order, and contents.
  std::vector<std::string> Read(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(Path(name));
    std::vector<std::string> shown;
    contents_.clear();
    InputFiles(paths).ForEach(
        [&](InputStream& stream) {
          std::string content;
          for (std::string_view next = stream.Peek(); !next.empty(); next = stream.Peek()) {
            content += next;
            stream.Skip(next.size());
          }
          shown.push_back(fs::path(stream.name()).lexically_relative(directory_).string());
          EXPECT_EQ(stream.bytes_read(), content.size());
          contents_[shown.back()] = content;
          return true;
        },
        diagnostics_);
    return shown;
  }

  fs::path directory_;
  std::map<std::string, std::string> contents_;
  Diagnostics diagnostics_;
};

// Longer than any buffer, and not all alike.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 60'000; ++i) text += std::to_string(i * 7919 % 100'003) + "\n";
  return text;
}

TEST_F(InputFilesTest, DirectoriesAreReadByNameWithNumbersByValue) {
  Write("dump/rank10", "ten");
  Write("dump/rank2", "two");
  Write("dump/.hidden", "no");
  Write("dump/below/x", "x");
  EXPECT_THAT(Read({"dump"}), ElementsAre("dump/below/x", "dump/rank2", "dump/rank10"));
  EXPECT_EQ(contents_["dump/rank10"], "ten");
}

TEST_F(InputFilesTest, GzipAndZstdAreDecompressedInAllTheirMembers) {
  const std::string text = LongText();
  Write("a", text);
  Write("b", "and more");
  Run("gzip -c a > t.gz && gzip -c b >> t.gz && zstd -q -c a > t.zst && zstd -q -c b >> t.zst");
  Read({"t.gz", "t.zst"});
  EXPECT_EQ(diagnostics_.ToString(), "");
  EXPECT_TRUE(contents_["t.gz"] == text + "and more");
  EXPECT_TRUE(contents_["t.zst"] == text + "and more");
}

TEST_F(InputFilesTest, TarArchivesAreReadFileByFile) {
  const std::string long_name(150, 'n');
  Write("ranks/rank0", "zero");
  Write("ranks/" + long_name, LongText());
  Write("ranks/empty", "");
  Write("ranks/._rank0", "resource fork");
  Run("gzip ranks/rank0");
  for (const char* format : {"gnu", "pax"}) {
    Run(std::string("tar --sort=name --format=") + format + " -czf ranks.tgz ranks");
    EXPECT_THAT(Read({"ranks.tgz"}),
                ElementsAre("ranks.tgz/ranks/empty", "ranks.tgz/ranks/" + long_name,
                            "ranks.tgz/ranks/rank0.gz"))
        << format;
    EXPECT_EQ(diagnostics_.ToString(), "");
    EXPECT_EQ(contents_["ranks.tgz/ranks/rank0.gz"], "zero");
    EXPECT_TRUE(contents_["ranks.tgz/ranks/" + long_name] == LongText());
  }
}

// GNU tar leaves the holes of a file out with -S; what remains is not the file.
TEST_F(InputFilesTest, FilesThatDoNotStandInAnArchiveAsTheyAreAreFindings) {
  Write("a", "whole");
  Run("truncate -s 1M b && echo end >> b");
  for (const char* format : {"gnu", "pax"}) {
    Run(std::string("tar --format=") + format + " -cSf sparse.tar a b");
    diagnostics_ = {};
    EXPECT_THAT(Read({"sparse.tar"}), ElementsAre("sparse.tar/a")) << format;
    EXPECT_THAT(diagnostics_.ToString(), HasSubstr("is stored without its holes")) << format;
  }
}

// One that was cut between two files cannot be distinguished from one of a tool that writes no
// mark.
TEST_F(InputFilesTest, AnArchiveWithoutItsEndMarkIsRead) {
  Write("a", "whole");
  Write("b", "lost");
  Run("tar -cf whole.tar a b && head -c 1024 whole.tar > cut.tar && head -c 1100 whole.tar > "
      "header.tar");
  EXPECT_THAT(Read({"cut.tar"}), ElementsAre("cut.tar/a"));
  EXPECT_EQ(diagnostics_.error_count(), 0);
  EXPECT_THAT(diagnostics_.ToString(), HasSubstr("warning: ends without tar's end mark"));
  Read({"header.tar"});
  EXPECT_EQ(diagnostics_.error_count(), 1);
  EXPECT_THAT(diagnostics_.ToString(), HasSubstr("the archive ends within a header"));
}

TEST_F(InputFilesTest, WhatIsNoFileIsPassedOver) {
  Write("dump/rank0", "zero");
  Run("ln -s gone dump/rank1 && mkfifo dump/rank2");
  const InputFiles files({Path("dump")});
  EXPECT_THAT(files.paths(), ElementsAre(Path("dump/rank0")));
  EXPECT_THAT(files.passed_over(),
              ElementsAre(std::pair(Path("dump/rank1"), "is a symbolic link to no file"),
                          std::pair(Path("dump/rank2"), "is no regular file")));
}

TEST_F(InputFilesTest, TruncatedDataAreAFinding) {
  Write("a", LongText());
  Run("gzip -k a && zstd -q a && tar -cf a.tar a");
  for (const char* name : {"a.gz", "a.zst", "a.tar"}) {
    fs::resize_file(Path(name), fs::file_size(Path(name)) / 2);
    diagnostics_ = {};
    Read({name});
    EXPECT_EQ(diagnostics_.error_count(), 1) << name << diagnostics_.ToString();
  }
}

// A cut anywhere is found: within the first frame's header, a block or the last checksum.
TEST_F(InputFilesTest, AFileOfZstdIsWholeOrAFinding) {
  Write("a", LongText());
  Run("zstd -q a && cp a.zst whole.zst");
  const auto bytes = static_cast<int64_t>(fs::file_size(Path("whole.zst")));
  for (const int64_t kept : {int64_t{4}, int64_t{5}, bytes / 3, bytes - 5, bytes - 1}) {
    fs::copy_file(Path("whole.zst"), Path("a.zst"), fs::copy_options::overwrite_existing);
    fs::resize_file(Path("a.zst"), static_cast<uintmax_t>(kept));
    diagnostics_ = {};
    Read({"a.zst"});
    EXPECT_EQ(diagnostics_.error_count(), 1) << kept << " bytes: " << diagnostics_.ToString();
    EXPECT_THAT(diagnostics_.ToString(), HasSubstr("truncated or corrupt")) << kept;
  }
  diagnostics_ = {};
  EXPECT_THAT(Read({"whole.zst"}), ElementsAre("whole.zst"));
  EXPECT_EQ(diagnostics_.error_count(), 0);
}

TEST_F(InputFilesTest, CorruptDataAreAFinding) {
  Write("a", LongText());
  Run("gzip -k a && zstd -q a");
  for (const char* name : {"a.gz", "a.zst"}) {
    std::fstream file(Path(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(Path(name)) / 2));
    file << "garbage garbage garbage";
    file.close();
    diagnostics_ = {};
    Read({name});
    EXPECT_EQ(diagnostics_.error_count(), 1) << name << diagnostics_.ToString();
  }
}

TEST_F(InputFilesTest, WhatExpandsBeyondReasonIsNotReadOn) {
  Run("head -c 120000000 /dev/zero | gzip -c > bomb.gz && "
      "head -c 120000000 /dev/zero | zstd -q -c > bomb.zst");
  for (const char* name : {"bomb.gz", "bomb.zst"}) {
    diagnostics_ = {};
    uint64_t bytes = 0;
    InputFiles({Path(name)})
        .ForEach(
            [&](InputStream& stream) {
              for (size_t next = stream.Peek().size(); next > 0; next = stream.Peek().size()) {
                bytes += next;
                stream.Skip(next);
              }
              return true;
            },
            diagnostics_);
    EXPECT_LT(bytes, 2 * kExpansionFreeBytes) << name;
    EXPECT_THAT(diagnostics_.ToString(), HasSubstr("expand to more than")) << name;
  }
}

TEST_F(InputFilesTest, AMissingFileIsAnEnvironmentError) {
  EXPECT_THROW(Read({"none"}), EnvironmentError);
}

}  // namespace
}  // namespace railyard
