// SPDX-License-Identifier: GPL-2.0-only
// The studies the project ships, each with fewer values and seeds.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/regex.h"

namespace railyard::testing {
namespace {

namespace fs = std::filesystem;

// NCCL's default: 4.096 us x 2^20.
constexpr double kTimeoutPs = 4.096e6 * (1 << 20);

class StudyExamplesTest : public ProgramTest {
 protected:
  static fs::path Examples() { return fs::path(RAILYARD_SOURCE_DIR) / "simulator/study/examples"; }

  // The rows of the example with these values on the axis of the field.
  Table Points(const std::string& example, const std::string& field, const std::string& values) {
    for (const auto& entry : fs::directory_iterator(Examples())) {
      scratch_.Write(entry.path().filename().string(), ReadText(entry.path().string()));
    }
    const std::regex axis("(\"" + std::regex_replace(field, std::regex("[\\[\\].]"), "\\$&") +
                          "\"\\s+values: )\\[[^\\]]*\\]");
    const std::string text = ReadText((Examples() / example).string());
    EXPECT_TRUE(std::regex_search(text, axis)) << example;
    const std::string shortened = std::regex_replace(std::regex_replace(text, axis, "$1" + values),
                                                     std::regex("seeds: \\d+"), "seeds: 1");
    const ProgramExit exit = Railyard({"study", scratch_.Write(example, shortened), "--out",
                                       scratch_.Path("study"), "--jobs", "2"});
    EXPECT_EQ(exit.status, 0) << exit.errors;
    return ReadCsv(scratch_.Path("study") + "/points.csv");
  }
};

// Short flaps are asked for by what follows, longer ones wait for the timer, and from 7 time-outs
// on, less what routes take, none is ridden out.
TEST_F(StudyExamplesTest, TheLengthOfAFlap) {
  const Table points =
      Points("flap_length.textproto", "faults[0].until", R"(["5us", "50us", "10s", "30s"])");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points.Integer(0, "transport.timeouts"), 0);
  EXPECT_LT(points.Real(0, "collectives.stretch.max"), 1.1);
  for (const auto& [row, tries] : {std::pair(1u, 1), std::pair(2u, 3)}) {
    EXPECT_EQ(points.Text(row, "status"), "COMPLETED");
    EXPECT_GT(points.Integer(row, "transport.timeouts"), 0);
    EXPECT_NEAR(points.Real(row, "faults.0.time_to_recover_ps") / kTimeoutPs, tries, 0.001);
  }
  EXPECT_EQ(points.Text(3, "status"), "JOB_ABORTED");
}

TEST_F(StudyExamplesTest, TheRateOfALoss) {
  const Table points =
      Points("loss_rate.textproto", "faults[0].loss.probability", R"(["1e-4", "1e-3"])");
  ASSERT_EQ(points.size(), 2u);
  // 7,680 data packets cross the cable in each of ten AllReduces, and a control packet for some.
  for (const auto& [row, probability] : {std::pair(0u, 1e-4), std::pair(1u, 1e-3)}) {
    const double lost = points.Real(row, "faults.0.dropped_packets");
    EXPECT_GT(lost, 76'800 * probability - 4 * std::sqrt(76'800 * probability));
    EXPECT_LT(lost, 2 * 76'800 * probability + 4 * std::sqrt(2 * 76'800 * probability));
  }
  EXPECT_GT(points.Real(1, "transport.retransmitted_packets"),
            points.Real(0, "transport.retransmitted_packets"));
}

TEST_F(StudyExamplesTest, OneLostPacket) {
  const Table points =
      Points("one_loss.textproto", "faults[0].loss.packets.number", R"(["700", "1600"])");
  ASSERT_EQ(points.size(), 4u);
  double longest = 0;
  for (size_t row = 0; row < points.size(); ++row) {
    EXPECT_EQ(points.Integer(row, "faults.0.dropped_packets"), 1);
    EXPECT_EQ(points.Integer(row, "transport.timeouts"), 0);
    // Some are made up for before anybody waits.
    EXPECT_GE(points.Real(row, "collectives.stretch.mean"), 1);
    EXPECT_LT(points.Real(row, "collectives.stretch.mean"), 1.01);
    longest = std::max(longest, points.Real(row, "collectives.stretch.mean"));
  }
  EXPECT_GT(longest, 1);
}

TEST_F(StudyExamplesTest, AreAllAmongThese) {
  std::set<std::string> studies;
  for (const auto& entry : fs::directory_iterator(Examples())) {
    const std::string text = ReadText(entry.path().string());
    if (text.find("\nscenario:") != std::string::npos) studies.insert(entry.path().filename());
  }
  EXPECT_THAT(studies, ::testing::ElementsAre("flap_length.textproto", "loss_rate.textproto",
                                              "one_loss.textproto"));
}

}  // namespace
}  // namespace railyard::testing
