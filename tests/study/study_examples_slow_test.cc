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
  const Table points =
      Points("size_scale.textproto", "workload.program.collectives[0].bytes", R"(["128MiB"])");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_GT(points.Real(0, "by_kind.0.busbw_GBps.max"), points.Real(3, "by_kind.0.busbw_GBps.max"));
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

TEST_F(StudyExamplesTest, CheckpointsThatAreTooRareLoseMore) {
  const Table points =
      Points("checkpoint_interval.textproto", "restart.checkpoint_every", R"(["30", "2160"])");
  ASSERT_EQ(points.size(), 4u);
  EXPECT_GT(points.Real(2, "jobs.0.lost_ps"), points.Real(0, "jobs.0.lost_ps"));
}

// GPUs fail 220 times in 54 days of 16,384 and 0.057 % of cables a month, of which a restart
// follows where the job runs. 17,280 iterations of 150 s and their checkpoints are the month
// without faults.
TEST_F(StudyExamplesTest, AMonthOfPublishedFailures) {
  fs::copy(Examples() / "scenarios", scratch_.Path("scenarios"));
  const std::string text =
      std::regex_replace(ReadText((Examples() / "mtbf_month.textproto").string()),
                         std::regex("seeds: \\d+"), "seeds: 2");
  const ProgramExit exit = Railyard({"study", scratch_.Write("mtbf_month.textproto", text), "--out",
                                     scratch_.Path("study"), "--jobs", "2"});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  ASSERT_EQ(points.size(), 2u);
  const double months = 2 * 17'280 * 150 / (30 * 86'400.0);
  const double failures = months * 1'024 * (220.0 / 16'384 * 30 / 54 + 0.00057);
  const auto restarts = static_cast<double>(points.Sum("jobs.0.restarts"));
  EXPECT_NEAR(restarts, failures, 4 * std::sqrt(failures));
  EXPECT_GT(restarts, 0);
  const double fault_free = 17'280 * 150e12 + (17'280 / 12 - 1) * 20e12;
  for (size_t row = 0; row < points.size(); ++row) {
    const double lost = points.Real(row, "jobs.0.lost_ps");
    // Each failure costs at least what nothing went on for, the queue and the load.
    EXPECT_GE(lost, points.Real(row, "jobs.0.restarts") * (300 + 60) * 1e12);
    EXPECT_NEAR(points.Real(row, "jobs.0.goodput"), fault_free / (fault_free + lost), 1e-4);
  }
}

// Two runs of it: a month with a short interval takes minutes.
TEST_F(StudyExamplesTest, SparesAndCheckpoints) {
  fs::copy(Examples() / "scenarios", scratch_.Path("scenarios"));
  std::string text = ReadText((Examples() / "spare_servers.textproto").string());
  for (const auto& [from, to] :
       {std::pair("seeds: \\d+", "seeds: 1\nno_baseline: true"),
        std::pair("first: 3 ", "first: 48 "), std::pair("count: 4", "count: 2"),
        std::pair("values: \\[\"\\[\\]\", .*\\]\n", "values: [\"[]\"]\n")}) {
    EXPECT_TRUE(std::regex_search(text, std::regex(from))) << from;
    text = std::regex_replace(text, std::regex(from), to);
  }
  const ProgramExit exit = Railyard({"study", scratch_.Write("spare_servers.textproto", text),
                                     "--out", scratch_.Path("study"), "--jobs", "2"});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  ASSERT_EQ(points.size(), 2u);
  for (size_t row = 0; row < points.size(); ++row) {
    const int64_t every = points.Integer(row, "every");
    EXPECT_EQ(every, 48 * (row == 0 ? 1 : 4));
    EXPECT_EQ(points.Integer(row, "jobs.0.save_ps"), (17'280 / every - 1) * 20'000'000'000'000);
    // Up to the last checkpoint, and the iteration that failed.
    EXPECT_LE(points.Real(row, "jobs.0.rework_ps"),
              points.Real(row, "jobs.0.restarts") * (static_cast<double>(every) * 151e12 + 620e12));
    EXPECT_NEAR(points.Real(row, "hours"), static_cast<double>(every) * 150 / 3'600, 1e-9);
  }
}

TEST_F(StudyExamplesTest, ThePlaceOfAFlap) {
  const Table points = Points("flap_position.textproto", "faults[0].until", R"(["100ms"])");
  ASSERT_EQ(points.size(), 12u);
  for (size_t row = 0; row < points.size(); ++row) {
    EXPECT_EQ(points.Text(row, "status"), "COMPLETED");
  }
  // A time-out of a quarter of the flap is over when the flap is; one of four seconds is not.
  EXPECT_GT(points.Real(6, "collectives.stretch.max"), points.Real(4, "collectives.stretch.max"));
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
TEST_F(StudyExamplesTest, AreAllAmongTheseOrHaveAPage) {
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
  EXPECT_THAT(without_page,
              ::testing::IsSubsetOf(
                  {"checkpoint_interval.textproto", "flap_length.textproto",
                   "flap_position.textproto", "loss_rate.textproto", "loss_recovery.textproto",
                   "mtbf_month.textproto", "one_loss.textproto", "oversubscription.textproto",
                   "size_scale.textproto", "spare_servers.textproto", "topologies.textproto"}));
}

}  // namespace
}  // namespace railyard::testing
