// SPDX-License-Identifier: GPL-2.0-only
// `railyard compare` as its users see it.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class Compare : public ProgramTest {
 protected:
  std::string RunOf(const std::string& size) {
    return RunText(RailOptimized(2) + Program("ALL_REDUCE", size, "repeat: 10")).directory;
  }
};

TEST_F(Compare, AResultEqualsItself) {
  const std::string run = RunOf("1MiB");
  const ProgramExit exit = Railyard({"compare", run, run, "--threshold", "0"});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_NE(exit.output.find("in every collective, to the picosecond"), std::string::npos)
      << exit.output;
}

TEST_F(Compare, CollectivesWithoutAPartnerAreNotSaidToBeEqual) {
  const std::string ten = RunOf("1MiB");
  const std::string eleven =
      RunText(RailOptimized(2) + Program("ALL_REDUCE", "1MiB", "repeat: 11")).directory;
  const ProgramExit exit = Railyard({"compare", ten, eleven, "--threshold", "0"});
  EXPECT_EQ(exit.status, 5) << exit.errors;
  EXPECT_NE(exit.output.find("in every collective that both have, to the picosecond"),
            std::string::npos)
      << exit.output;
}

// Over a NIC of a quarter of the rate an AllReduce that leaves its servers takes longer.
TEST_F(Compare, ADifferenceBeyondTheThresholdIsAnExitStatus) {
  const std::string workload = Program("ALL_REDUCE", "16MiB", "repeat: 10");
  const std::string fast = RunText(RailOptimized(2) + workload).directory;
  const std::string slow =
      RunText(
          "fabric { rail_optimized { servers: 2 gpus_per_server: 8 nic_rate: \"100Gbps\" } }\n" +
          workload)
          .directory;
  const std::string json = scratch_.Path("c.json");
  const ProgramExit exit = Railyard({"compare", fast, slow, "--json", json});
  EXPECT_EQ(exit.status, 5) << exit.errors;
  EXPECT_NE(exit.output.find(" is slower than "), std::string::npos) << exit.output;
  rapidjson::Document document;
  document.Parse(ReadText(json).c_str());
  ASSERT_TRUE(document.IsObject());
  EXPECT_TRUE(document["exceeds"].GetBool());
  const auto& all = document["comparisons"][0]["kinds"][0];
  EXPECT_EQ(all["pairs"].GetInt(), 10);
  EXPECT_GT(all["difference"].GetDouble(), 0.1);
  EXPECT_EQ(Railyard({"compare", slow, fast, "--threshold", "1000"}).status, 0);
  EXPECT_EQ(Railyard({"compare", slow, fast, "--threshold", "nan"}).status, 2);
}

TEST_F(Compare, AFileOfAResultIsNotOverwritten) {
  const std::string run = RunOf("1MiB");
  const ProgramExit exit = Railyard({"compare", run, run, "--json", run + "/summary.json"});
  EXPECT_EQ(exit.status, 2);
  EXPECT_NE(exit.errors.find("is read by this command"), std::string::npos) << exit.errors;
  EXPECT_NE(ReadText(run + "/summary.json").find("\"fingerprint\""), std::string::npos);
}

TEST_F(Compare, ADirectoryWithoutAResultIsRefused) {
  const std::string run = RunOf("1MiB");
  const ProgramExit exit = Railyard({"compare", run, scratch_.Path("none")});
  EXPECT_EQ(exit.status, 2);
  EXPECT_NE(exit.errors.find("is no result of a run"), std::string::npos) << exit.errors;
}

TEST_F(Compare, ADamagedDatabaseIsRefused) {
  const std::string run = RunOf("1MiB");
  const std::string damaged = scratch_.Path("damaged");
  std::filesystem::create_directory(damaged);
  scratch_.Write("damaged/results.sqlite", "no database");
  const ProgramExit exit = Railyard({"compare", run, damaged, "--json", scratch_.Path("c.json")});
  EXPECT_EQ(exit.status, 2);
  EXPECT_NE(exit.errors.find("results.sqlite: error: is no result of a run"), std::string::npos)
      << exit.errors;
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("c.json")));
}

}  // namespace
}  // namespace railyard::testing
