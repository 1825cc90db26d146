// SPDX-License-Identifier: GPL-2.0-only
// Time series of runs, against what the run counted as a whole and what closed forms say of a wire.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class SeriesTest : public ProgramTest {
 protected:
  // Sums over bins are what links.csv has.
  static void ExpectSumsOfLinks(const EndedRun& run) {
    std::map<std::string, std::vector<int64_t>> sums;
    const Table series = ReadCsv(run.directory + "/link_series.csv");
    for (size_t row = 0; row < series.size(); ++row) {
      std::vector<int64_t>& sum = sums[series.Text(row, "link")];
      sum.resize(4);
      sum[0] += series.Integer(row, "wire_bytes");
      sum[1] += series.Integer(row, "payload_bytes");
      sum[2] += series.Integer(row, "packets");
      sum[3] += series.Integer(row, "dropped_packets");
    }
    for (size_t row = 0; row < run.links.size(); ++row) {
      std::vector<int64_t> sum = sums[run.links.Text(row, "link")];
      sum.resize(4);
      EXPECT_EQ(sum[0], run.links.Integer(row, "payload_bytes") +
                            run.links.Integer(row, "header_bytes") +
                            run.links.Integer(row, "retransmitted_bytes"))
          << run.links.Text(row, "link");
      EXPECT_EQ(sum[1], run.links.Integer(row, "payload_bytes"));
      EXPECT_EQ(sum[2], run.links.Integer(row, "packets"));
      EXPECT_EQ(sum[3], run.links.Integer(row, "dropped_packets"));
    }
  }
};

// A link cannot carry more than its rate in any bin; one that is the bottleneck of a long
// collective carries nearly that.
TEST_F(SeriesTest, AnAllToAllKeepsItsWiresBusy) {
  const EndedRun run =
      RunText(RailOptimized(2) + Program("ALL_TO_ALL", "64MiB"), {"--no-replay-cache"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectSumsOfLinks(run);
  double busiest = 0;
  const Table series = ReadCsv(run.directory + "/link_series.csv");
  const Table bins = ReadCsv(run.directory + "/series.csv");
  EXPECT_GT(bins.size(), 16u);
  for (size_t row = 0; row < series.size(); ++row) {
    EXPECT_LE(series.Real(row, "utilization"), 1.01) << series.Text(row, "link");
    if (series.Text(row, "link") == "server0/nic0>leaf0") {
      busiest = std::max(busiest, series.Real(row, "utilization"));
    }
  }
  EXPECT_GT(busiest, 0.9);
  EXPECT_EQ(bins.Sum("replayed_ps"), 0);
  EXPECT_EQ(run.Query("SELECT COUNT(*) AS n FROM link_series").Integer(0, "n"),
            static_cast<int64_t>(series.size()));
  EXPECT_EQ(run.Query("SELECT COUNT(*) AS n FROM series").Integer(0, "n"),
            static_cast<int64_t>(bins.size()));
}

// Traffic that the replay cache knew is spread over the time that it took.
TEST_F(SeriesTest, WhatIsReplayedIsThere) {
  const EndedRun run = RunText(RailOptimized(1) + Program("ALL_REDUCE", "4MiB", "repeat: 40"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ASSERT_GT(run.Integer("collectives.replayed"), 10);
  ExpectSumsOfLinks(run);
  const Table bins = ReadCsv(run.directory + "/series.csv");
  const int64_t replayed_ps = bins.Sum("replayed_ps");
  EXPECT_GT(replayed_ps, run.Integer("simulated_time_ps") / 4);
  EXPECT_LE(replayed_ps, run.Integer("simulated_time_ps"));
  // Equal collectives follow one another: all whole bins are alike, as they are when simulated.
  const Table series = ReadCsv(run.directory + "/link_series.csv");
  int64_t bins_used = 0;
  for (size_t row = 0; row < series.size(); ++row) {
    if (series.Text(row, "link") != "server0/gpu0>server0/nvswitch0") continue;
    ++bins_used;
    EXPECT_LE(series.Real(row, "utilization"), 1.01);
  }
  EXPECT_GE(bins_used, static_cast<int64_t>(bins.size()) - 1);
}

TEST_F(SeriesTest, LossesAndTimeoutsAreInTheirBins) {
  const EndedRun run = RunText(RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 2") +
                               LinkDown("server0/nic0--leaf0", "100us", "400us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectSumsOfLinks(run);
  const Table bins = ReadCsv(run.directory + "/series.csv");
  EXPECT_EQ(bins.Sum("timeouts"), run.Integer("transport.timeouts"));
  EXPECT_EQ(bins.Sum("retransmitted_packets"), run.Integer("transport.retransmitted_packets"));
  EXPECT_GT(run.Integer("transport.timeouts"), 0);
}

// 15 senders at 400 Gbit/s to one receiver: its leaf's port holds what the pause frames and marks
// let it, and the senders are throttled.
TEST_F(SeriesTest, AnIncastQueuesWhereItMeets) {
  const EndedRun run = RunFile(ShippedScenario("incast_64_to_1"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ExpectSumsOfLinks(run);
  const Table queues = ReadCsv(run.directory + "/queue_series.csv");
  std::map<std::string, int64_t> longest;
  for (size_t row = 0; row < queues.size(); ++row) {
    int64_t& most = longest[queues.Text(row, "link")];
    most = std::max(most, queues.Integer(row, "queue_max_bytes"));
    EXPECT_LE(queues.Real(row, "queue_mean_bytes"),
              static_cast<double>(queues.Integer(row, "queue_max_bytes")));
  }
  const Table bins = ReadCsv(run.directory + "/series.csv");
  EXPECT_EQ(bins.Sum("cnp"), run.Integer("transport.cnp"));
  EXPECT_EQ(bins.Sum("ecn_marked"), run.Integer("transport.ecn_marked"));
  EXPECT_EQ(queues.Sum("paused_ps"), run.Integer("transport.pfc_pause_ps"));
  EXPECT_FALSE(longest.empty());
}

}  // namespace
}  // namespace railyard::testing
