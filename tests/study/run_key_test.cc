// SPDX-License-Identifier: GPL-2.0-only
// Keys of runs: what changes them, and what does not.
#include "simulator/study/run_key.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/temporary_directory.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class RunKeyTest : public ::testing::Test {
 protected:
  RunKeyTest() {
    Write("base.textproto", "trace: \"calls.txt\" # \"comment.txt\"\n");
    Write("calls.txt", "include: \"more.txt\"\n");
    Write("more.txt", "1");
    Write("comment.txt", "1");
    study_.scenarios = {{.name = "base", .path = File("base.textproto"), .where = {}}};
    study_.points = {{}};
  }

  std::string File(const std::string& name) const { return directory_.File(name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
  }
  // Makes one axis, of that field.
  void Vary(const std::string& field, const std::vector<std::string>& values) {
    study_.axes = {{.name = field, .fields = {field}, .values = values}};
    study_.points.clear();
    for (const std::string& value : values) study_.points.push_back({value});
  }
  std::vector<std::string> Keys() const { return RunKeys(study_, RunsOf(study_)); }
  std::string Key() const { return Keys().at(0); }

  TemporaryDirectory directory_;
  Study study_;
};

TEST_F(RunKeyTest, ARunHasAlwaysTheSameKey) {
  EXPECT_THAT(Key(), MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(Key(), Key());
}

TEST_F(RunKeyTest, SeedsSettingsAndTheFaultFreeRunChangeIt) {
  study_.seeds = 2;
  Vary("x", {"1", "2"});
  std::vector<std::string> keys = Keys();
  study_.no_baseline = true;
  for (const std::string& key : Keys()) keys.push_back(key);
  ASSERT_EQ(keys.size(), 8u);
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << " and " << j;
  }
}

TEST_F(RunKeyTest, TheContentOfEveryFileThatIsNamedChangesIt) {
  for (const char* const name : {"base.textproto", "calls.txt", "more.txt"}) {
    const std::string before = Key();
    std::ofstream(File(name), std::ios::app) << " ";
    EXPECT_NE(Key(), before) << name;
  }
  const std::string before = Key();
  Write("comment.txt", "2");
  Write("nobody.txt", "2");
  EXPECT_EQ(Key(), before) << "nobody names these files";
}

// The value is a name relative to the scenario, in quotes in a message.
TEST_F(RunKeyTest, TheContentOfAFileThatASettingNamesChangesIt) {
  study_.sets = {"field={ file: \"nobody.txt\" }", "other=" + File("other.txt")};
  Write("nobody.txt", "1");
  Write("other.txt", "1");
  const std::string before = Key();
  Write("nobody.txt", "2");
  const std::string after = Key();
  EXPECT_NE(after, before);
  Write("other.txt", "2");
  EXPECT_NE(Key(), after);
}

TEST_F(RunKeyTest, AStudyThatMovesWithItsFilesKeepsItsKeys) {
  const std::string before = Key();
  const TemporaryDirectory elsewhere;
  for (const char* const name : {"base.textproto", "calls.txt", "more.txt"}) {
    std::filesystem::copy(File(name), elsewhere.File(name));
  }
  study_.scenarios[0].path = elsewhere.File("base.textproto");
  EXPECT_EQ(Key(), before);
}

TEST_F(RunKeyTest, AScenarioThatCannotBeReadIsAnError) {
  study_.scenarios[0].path = File("none.textproto");
  EXPECT_THROW(Keys(), EnvironmentError);
}

// --- Fault-free runs -----------------------------------------------------------------------------

TEST_F(RunKeyTest, AFaultFreeRunDoesNotDependOnFaults) {
  const auto key = [&](const std::vector<std::string>& sets) {
    return FaultFreeKey(File("base.textproto"), sets);
  };
  const std::string alone = key({"seed=1"});
  EXPECT_EQ(key({"seed=1", "faults[0].until=5ms"}), alone);
  EXPECT_EQ(key({"faults=[]", "seed=1", "faults.at=1s"}), alone);
  EXPECT_NE(key({"seed=2"}), alone);
  EXPECT_NE(key({"seed=1", "faults_of_others=1"}), alone) << "that is another field";
  EXPECT_NE(alone, Key()) << "it is another run";
}

// The study has two seeds of two faults, and runs with equal seeds share their fault-free run.
TEST_F(RunKeyTest, RunsThatDifferInFaultsAloneShareTheirFaultFreeRun) {
  study_.seeds = 2;
  Vary("faults[0].until", {"1ms", "2ms"});
  const std::vector<StudyRun> runs = RunsOf(study_);
  const std::vector<std::string> keys = SharedFaultFreeKeys(study_, runs);
  ASSERT_EQ(keys.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(keys[i], FaultFreeKey(File("base.textproto"), SetsOf(study_, runs[i])));
    for (size_t j = 0; j < i; ++j) EXPECT_EQ(keys[i] == keys[j], runs[i].seed == runs[j].seed);
  }
}

TEST_F(RunKeyTest, AFaultFreeRunOfOneRunAloneIsNotShared) {
  Vary("faults[0].until", {"1ms"});
  EXPECT_THAT(SharedFaultFreeKeys(study_, RunsOf(study_)), ElementsAre(""));
  Vary("x", {"1", "2"});
  EXPECT_THAT(SharedFaultFreeKeys(study_, RunsOf(study_)), ElementsAre("", ""));
  Vary("faults[0].until", {"1ms", "2ms"});
  study_.no_baseline = true;
  EXPECT_THAT(SharedFaultFreeKeys(study_, RunsOf(study_)), Each(""));
}

}  // namespace
}  // namespace railyard
