// SPDX-License-Identifier: GPL-2.0-only
// Inputs that fuzzing found (tests/fuzz/corpus/TARGET/NAME), read again in every build.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz_targets.h"

namespace railyard::testing {
namespace {

std::filesystem::path Corpus() { return RAILYARD_SOURCE_DIR "/tests/fuzz/corpus"; }

class FuzzCorpusTest : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpusTest, FindingsStayMended) {
  const std::filesystem::path directory = Corpus() / GetParam().name;
  if (!std::filesystem::exists(directory)) return;  // nothing was found
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    RunFuzzTarget(GetParam(), std::string(std::istreambuf_iterator<char>(file), {}));
  }
}

TEST(FuzzCorpusTest, EveryFolderIsOfATarget) {
  std::set<std::string> names;
  for (const FuzzTarget& target : FuzzTargets()) names.insert(target.name);
  for (const auto& entry : std::filesystem::directory_iterator(Corpus())) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(names.contains(entry.path().filename().string())) << entry.path();
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpusTest, ::testing::ValuesIn(FuzzTargets()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace railyard::testing
