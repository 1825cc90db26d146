// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_queue.h"

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/study/cost_model.h"
#include "simulator/study/study.h"

namespace railyard {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(CostModelTest, FactorsOfValuesPredictCombinationsThatNoRunHad) {
  // servers x loss, 1, 10 and 100 times 2 and 6; one combination is left out.
  const std::vector<std::pair<std::string, double>> servers = {{"8", 1}, {"64", 10}, {"512", 100}};
  const std::vector<std::pair<std::string, double>> losses = {{"0", 2}, {"0.1", 6}};
  CostModel model;
  for (const auto& [server, factor] : servers) {
    for (const auto& [loss, cost] : losses) {
      if (server == "512" && loss == "0.1") continue;
      model.Add(std::vector<std::string>{server, loss}, factor * cost);
    }
  }
  // A value that one run alone had is drawn towards no effect by a twentieth: e^(-0.05 ln 50) =
  // 0.82.
  EXPECT_NEAR(model.Estimate(std::vector<std::string>{"512", "0.1"}), 600, 120);
  EXPECT_NEAR(model.Estimate(std::vector<std::string>{"8", "0"}), 2, 0.2);
  EXPECT_GE(model.EstimateOfLargest(std::vector<std::string>{"512", "0"}), 200);
}

TEST(CostModelTest, AnUnknownValueIsTheAverageOne) {
  CostModel model;
  EXPECT_EQ(model.Estimate(std::vector<std::string>{"1"}), 0);
  for (const char* const value : {"1", "2"}) model.Add(std::vector<std::string>{value}, 3);
  EXPECT_NEAR(model.Estimate(std::vector<std::string>{"7"}), 3, 1e-9);
}

class RunQueueTest : public ::testing::Test {
 protected:
  // An axis with these values, `seeds` runs of each.
  RunQueue Queue(const std::vector<std::string>& values, uint32_t seeds, int64_t memory_bytes) {
    study_.axes = {{.name = "a"}};
    study_.seeds = seeds;
    for (const std::string& value : values) study_.points.push_back({value});
    runs_ = RunsOf(study_);
    std::vector<size_t> left(runs_.size());
    std::iota(left.begin(), left.end(), 0);
    return {runs_, left, memory_bytes};
  }

  Study study_;
  std::vector<StudyRun> runs_;
};

TEST_F(RunQueueTest, TheLongestByEstimateStartsFirst) {
  RunQueue queue = Queue({"short", "long", "middle"}, 2, 1'000 * kMiB);
  // Nothing is known at first.
  for (const auto& [run, seconds] : {std::pair(0u, 1.0), std::pair(1u, 1.0)}) {
    EXPECT_EQ(queue.Start(), run);
    queue.End(run, seconds, kMiB);
  }
  EXPECT_EQ(queue.Start(), 2u);
  queue.End(2, 9, kMiB);
  // One of "long" took nine times as long, and "middle" counts as average.
  EXPECT_EQ(queue.Start(), 3u);
  EXPECT_EQ(queue.Start(), 4u);
  EXPECT_EQ(queue.Start(), 5u);
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.Start(), std::nullopt);
}

TEST_F(RunQueueTest, ARunThatIsNotExpectedToFitWaits) {
  RunQueue queue = Queue({"a"}, 5, 250 * kMiB);
  EXPECT_EQ(queue.Start(), 0u);
  queue.End(0, 1, 100 * kMiB);
  EXPECT_EQ(queue.EstimatedBytes(1), 100 * kMiB);
  EXPECT_TRUE(queue.Start().has_value());
  const auto second = queue.Start();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(queue.Start(), std::nullopt) << "three of 100 MiB are beyond 250";
  queue.End(*second, 1, 130 * kMiB);
  EXPECT_EQ(queue.EstimatedBytes(4), 130 * kMiB) << "the largest of the point";
  EXPECT_TRUE(queue.Start().has_value()) << "100 and 130 fit";
  EXPECT_EQ(queue.Start(), std::nullopt);
}

TEST_F(RunQueueTest, ASmallerOneGoesAheadOfOneThatDoesNotFit) {
  RunQueue queue = Queue({"small", "large"}, 3, 150 * kMiB);
  EXPECT_EQ(queue.Start(), 0u);
  queue.End(0, 1, 10 * kMiB);
  EXPECT_EQ(queue.Start(), 1u);
  queue.End(1, 1, 10 * kMiB);
  EXPECT_EQ(queue.Start(), 2u);
  queue.End(2, 1, 10 * kMiB);
  EXPECT_EQ(queue.Start(), 3u);
  queue.End(3, 50, 100 * kMiB);
  EXPECT_EQ(runs_[queue.Start().value()].point, 1u);
  EXPECT_EQ(queue.Start(), std::nullopt) << "two large ones are beyond 150";
}

TEST_F(RunQueueTest, WithNothingBesideItAnythingFits) {
  RunQueue queue = Queue({"a"}, 2, kMiB);
  EXPECT_EQ(queue.Start(), 0u);
  queue.End(0, 1, 100 * kMiB);
  EXPECT_EQ(queue.Start(), 1u);
}

TEST_F(RunQueueTest, AKilledRunIsRunOnceMoreAlone) {
  RunQueue queue = Queue({"a"}, 3, 1'000 * kMiB);
  EXPECT_EQ(queue.Start(), 0u);
  EXPECT_EQ(queue.Start(), 1u);
  EXPECT_TRUE(queue.Retry(0));
  // Run 1 is still there: another one starts, run 0 does not.
  EXPECT_EQ(queue.Start(), 2u);
  EXPECT_EQ(queue.Start(), std::nullopt);
  queue.End(1, 1, kMiB);
  EXPECT_EQ(queue.Start(), std::nullopt);
  queue.End(2, 1, kMiB);
  EXPECT_EQ(queue.Start(), 0u);
  EXPECT_FALSE(queue.Retry(0));
  EXPECT_TRUE(queue.is_empty());
}

}  // namespace
}  // namespace railyard
