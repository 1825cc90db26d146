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
  static fs::path Examples() { return fs::path(RAILYARD_SOURCE_DIR) / "analysis/studies"; }

  // The rows of the example with these values on the axis of the field.
  Table Points(const std::string& example, const std::string& field, const std::string& values) {
    fs::copy(Examples() / "scenarios", scratch_.Path("scenarios"));
    const std::regex axis("(\"" + std::regex_replace(field, std::regex("[\\[\\].]"), "\\$&") +
                          R"re("\s+values: )\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])re");
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

// A quarter of the spines carry a quarter: an AllToAll that leaves its leaf takes four times as
// long for what goes up, while rings between neighbours hardly notice.
TEST_F(StudyExamplesTest, Oversubscription) {
  const Table points =
      Points("oversubscription.textproto", "fabric.leaf_spine.spines", R"(["16", "4"])");
  ASSERT_EQ(points.size(), 4u);
  ASSERT_EQ(points.Text(1, "kind"), "ALL_TO_ALL");
  ASSERT_EQ(points.Text(3, "kind"), "ALL_TO_ALL");
  EXPECT_GT(points.Real(3, "collectives.duration_ps.max"),
            2 * points.Real(1, "collectives.duration_ps.max"));
}

// Inside one server an AllReduce of many bytes has the NVLinks' bandwidth, between servers the
// NICs'.
TEST_F(StudyExamplesTest, SizeAndScale) {
  const Table points = Points("effective_bandwidth.textproto",
                              "fabric.rail_optimized.mixed_servers[0].platform", R"(["dgx-h100"])");
  ASSERT_EQ(points.size(), 21u);
  ASSERT_EQ(points.Text(6, "size"), "256MiB");
  ASSERT_EQ(points.Text(20, "servers"), "4");
  EXPECT_GT(points.Real(6, "by_kind.0.busbw_GBps.max"),
            points.Real(20, "by_kind.0.busbw_GBps.max"));
}

TEST_F(StudyExamplesTest, LossesUnderSelectiveRepeat) {
  const Table points =
      Points("loss_recovery.textproto", "nic.congestion_control", R"(["{ none {} }"])");
  ASSERT_EQ(points.size(), 6u);
  for (size_t row = 0; row < points.size(); row += 2) {
    ASSERT_EQ(points.Text(row, "recovery"), "GO_BACK_N");
    // Packets behind a gap are sent again as well.
    EXPECT_GE(points.Integer(row, "transport.retransmitted_packets"),
              points.Integer(row + 1, "transport.retransmitted_packets"));
  }
}

// 17,280 iterations save every 3 to every 192, 20 s each, but not after the last. The same failures
// cost more work where checkpoints are rarer.
TEST_F(StudyExamplesTest, CheckpointsThatAreTooRareLoseMore) {
  const Table points =
      Points("spare_servers.textproto", "restart.spare_servers", R"(["[\"server128\"]"])");
  ASSERT_EQ(points.size(), 4u);
  for (size_t row = 0; row < points.size(); ++row) {
    const auto saves = static_cast<double>(17280 / points.Integer(row, "every") - 1);
    EXPECT_NEAR(points.Real(row, "jobs.0.save_ps") / 20e12, saves, 1e-6);
  }
  EXPECT_GT(points.Real(3, "jobs.0.rework_ps"), points.Real(0, "jobs.0.rework_ps"));
}

TEST_F(StudyExamplesTest, FabricsOfEqualSize) {
  const Table points = Points("topologies.textproto", "fabric.preset",
                              R"(["h100-8x8-multi-plane", "torus-2d-8x8"])");
  ASSERT_EQ(points.size(), 6u);
  // Without NVLink all of the payload crosses the network.
  EXPECT_LT(points.Real(0, "collectives.duration_ps.p50"),
            points.Real(3, "collectives.duration_ps.p50"));
}

// The studies of docs/studies have tests of their own: a page's numbers are those of its tables.
TEST_F(StudyExamplesTest, HaveAPageEach) {
  std::string pages;
  for (const auto& entry :
       fs::directory_iterator(std::string(RAILYARD_SOURCE_DIR) + "/docs/studies")) {
    if (entry.path().extension() == ".md") pages += ReadText(entry.path().string());
  }
  std::set<std::string> without_page;
  for (const auto& entry : fs::directory_iterator(Examples())) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file() && pages.find(name) == std::string::npos) without_page.insert(name);
  }
  EXPECT_THAT(without_page, ::testing::IsEmpty());
}

}  // namespace
}  // namespace railyard::testing
