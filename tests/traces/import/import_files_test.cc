// SPDX-License-Identifier: GPL-2.0-only
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "tests/traces/imported_files.h"
#include "traces/import/import.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using testing::ImportedFiles;

constexpr char kGoal[] =
    "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n";

std::string FindingsOf(const std::string& path, const std::string& format) {
  Diagnostics diagnostics;
  EXPECT_FALSE(ImportFiles({path}, format, {}, diagnostics).trace);
  return diagnostics.ToString();
}

TEST(ImportFilesTest, AByteOrderMarkOfUtf8IsSkipped) {
  ImportedFiles files;
  ASSERT_TRUE(files.Import({files.Write("a.goal", std::string("\xef\xbb\xbf") + kGoal)}).trace)
      << files.findings();
  EXPECT_EQ(files.import().report.format, "goal");
  EXPECT_EQ(files.import().report.calls_imported(), 2u);
}

TEST(ImportFilesTest, WhatIsKnownToBeNoCaptureIsNamed) {
  std::string utf16;
  for (const char c : std::string(kGoal)) utf16 += std::string(1, c) + std::string(1, '\0');
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},
      {std::string("PK\x03\x04") + std::string(60, '\0'), "is a ZIP archive"},
      {"\xff\xfe" + utf16, "is text in UTF-16"},
      {utf16, "is text in UTF-16"},
      {"<?xml version=\"1.0\"?>\n<algo name=\"ring\" ngpus=\"4\">\n", "is an algorithm of MSCCL"},
      {R"({"name": "a", "gpus": [{"id": 0, "threadblocks": []}]})", "is an algorithm of MSCCL"},
      {'\0' + utf16.substr(0, utf16.size() - 1), "is text in UTF-16"},
  };
  for (const auto& [content, finding] : cases) {
    ImportedFiles files;
    const std::string path = files.Write("file", content);
    EXPECT_THAT(FindingsOf(path, kAutoFormat), HasSubstr("/file: error: " + finding));
    EXPECT_THAT(FindingsOf(path, "goal"), HasSubstr("/file: error: " + finding));
  }
}

TEST(ImportFilesTest, FilesThatAreNoPartOfTheImportAreListed) {
  ImportedFiles files;
  const std::string goal = files.Write("a.goal", kGoal);
  const std::string directory = goal.substr(0, goal.rfind('/'));
  files.Write("notes.md", "notes\n");
  files.Write("none.goal", "");
  ASSERT_TRUE(files.Import({directory}).trace) << files.findings();
  const std::string text = files.import().report.ToString();
  EXPECT_THAT(text, HasSubstr("passed over:\n"));
  EXPECT_THAT(text, HasSubstr("/notes.md: it is in no format that is read\n"));
  EXPECT_THAT(text, HasSubstr("/none.goal: it is empty"));
  EXPECT_THAT(files.import().report.ToJson(),
              HasSubstr("\"reason\": \"is in no format that is read\""));
  // A link in an archive has no bytes of its own.
  const std::string archive = directory + "/links.tar";
  const std::string command =
      "cd '" + directory + "' && ln -s a.goal b.goal && tar -cf links.tar a.goal b.goal";
  ASSERT_EQ(std::system(command.c_str()), 0);
  ASSERT_TRUE(files.Import({archive}).trace) << files.findings();
  EXPECT_THAT(files.import().report.ToString(),
              HasSubstr("links.tar/b.goal: it is a symbolic link to a.goal\n"));
}

}  // namespace
}  // namespace railyard
