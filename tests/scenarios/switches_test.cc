// SPDX-License-Identifier: GPL-2.0-only
// Switches of one fabric that differ: in their buffers and marking.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

// Four servers on each of two leaves; three of each leaf send to the fourth, again and again.
std::string TwoIncasts() {
  std::string text =
      "fabric { leaf_spine { servers { count: 8 gpus: 1 nics: 1 } nics_per_leaf: 4 spines: 1 } }\n";
  for (int leaf = 0; leaf < 2; ++leaf) {
    std::string gpus;
    for (int server = 4 * leaf; server < 4 * leaf + 4; ++server) {
      gpus += fmt::format("{}\"server{}/gpu0\"", gpus.empty() ? "" : ", ", server);
    }
    text += fmt::format(
        "jobs {{ name: \"leaf{}\" workload {{ program {{ collectives {{ kind: GATHER bytes: "
        "\"4MiB\" "
        "repeat: 4 }} }} }} placement {{ gpus: [{}] }} }}\n",
        leaf, gpus);
  }
  return text;
}

class SwitchesTest : public ProgramTest {
 protected:
  // Returns the durations of the collectives of the job on a leaf.
  static std::vector<int64_t> DurationsPs(const EndedRun& run, int leaf) {
    std::vector<int64_t> durations_ps;
    for (size_t row = 0; row < run.collectives.size(); ++row) {
      if (!run.collectives.Text(row, "communicator").starts_with(fmt::format("leaf{}", leaf))) {
        continue;
      }
      durations_ps.push_back(run.collectives.Integer(row, "duration_ps"));
    }
    return durations_ps;
  }
};

TEST_F(SwitchesTest, TheLeafWithTheSmallBufferPausesItsSenders) {
  const EndedRun alike = RunText(TwoIncasts());
  ASSERT_TRUE(alike.has_result()) << alike.exit.errors;
  const std::string differ =
      TwoIncasts() + "switches { device: \"leaf1\" switch { buffer: \"64KiB\" } }\n";
  const EndedRun run = RunText(differ);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  ASSERT_EQ(DurationsPs(alike, 0).size(), 4u);
  EXPECT_EQ(DurationsPs(alike, 0), DurationsPs(alike, 1));
  EXPECT_EQ(DurationsPs(run, 0), DurationsPs(alike, 0));
  EXPECT_EQ(alike.Integer("transport.pfc_pause_ps"), 0);
  EXPECT_GT(run.Integer("transport.pfc_pause_ps"), 0);
}

TEST_F(SwitchesTest, LeavesThatDifferDoNotShareEpisodes) {
  const std::string differ =
      TwoIncasts() +
      "switches { device: \"leaf1\" switch { buffer: \"64KiB\" ecn_enabled: false } }\n"
      "switches { device: \"spine*\" switch { lossless_data: false } }\n";
  const EndedRun cached = RunText(differ, {"--no-baseline"});
  const EndedRun simulated = RunText(differ, {"--no-baseline", "--no-replay-cache"});
  const EndedRun verified = RunText(differ, {"--no-baseline", "--verify-replay-cache"});
  ASSERT_TRUE(cached.has_result()) << cached.exit.errors;
  ASSERT_TRUE(simulated.has_result()) << simulated.exit.errors;
  ASSERT_TRUE(verified.has_result()) << verified.exit.errors;
  EXPECT_EQ(cached.Text("fingerprint"), simulated.Text("fingerprint"));
  EXPECT_EQ(cached.Text("fingerprint"), verified.Text("fingerprint"));
}

}  // namespace
}  // namespace railyard::testing
