// SPDX-License-Identifier: GPL-2.0-only
// When checkpoints have been saved, for programs that are written by hand.
#include "simulator/run/checkpoint_times.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/units/time_end.h"
#include "tests/support/collectives.h"

namespace railyard {
namespace {

// Rank r has the r-th program, and a program's calls are of collectives 0, 1, ….
class CheckpointTimesTest : public ::testing::Test {
 protected:
  void AddRank(std::vector<JobOperation> program, std::vector<uint32_t> places) {
    const GlobalRank rank{job_.rank_count++};
    job_.operations.resize(job_.rank_count);
    job_.called.resize(job_.rank_count);
    job_.operations[rank] = std::move(program);
    job_.called[rank] = testing::Collectives({0, 1});
    job_.parts.resize(1);
    job_.parts[0].global_ranks.push_back(rank);
    places_.push_back(std::move(places));
  }
  void EndCollective(size_t number, int64_t end_ps) { times_[number].last_end_ps = end_ps; }
  int64_t Saved(uint64_t checkpoint, int64_t progress_ps) const {
    return SavedPs({.job = job_, .part = PartIndex{0}, .places = places_, .times = times_},
                   checkpoint, progress_ps);
  }
  // The stream and the time of computation, which may wait for an earlier operation.
  static JobOperation Compute(uint32_t stream, int64_t duration_ps,
                              uint32_t after = JobOperation::kNone) {
    return {.stream = stream, .after = after, .compute_before_ps = duration_ps};
  }
  static JobOperation Call(uint32_t number) { return {.call = number}; }

  Job job_;
  CheckpointPlaces places_;
  std::vector<CollectiveTimes> times_ = std::vector<CollectiveTimes>(2);
};

TEST_F(CheckpointTimesTest, ComputationCountsFromTheLastProgress) {
  AddRank({Compute(0, 5), Compute(0, 3)}, {2});
  EXPECT_EQ(Saved(0, 0), 8);
  EXPECT_EQ(Saved(0, 100), 108);
}

TEST_F(CheckpointTimesTest, ComputationCountsFromTheEndOfTheCollectiveBeforeIt) {
  AddRank({Compute(0, 5), Call(0), Compute(0, 3)}, {3});
  EXPECT_EQ(Saved(0, 0), kNeverPs);
  EndCollective(0, 40);
  EXPECT_EQ(Saved(0, 0), 43);
}

// The second stream's 7 begin when the collective has ended, and the checkpoint's 3 after them.
TEST_F(CheckpointTimesTest, ComputationWaitsForOtherStreams) {
  AddRank({Call(0), Compute(1, 2), Compute(1, 7, 0), Compute(0, 3, 2)}, {4});
  EndCollective(0, 40);
  EXPECT_EQ(Saved(0, 10), 40 + 7 + 3);
  EndCollective(0, 11);  // while the other stream still computes, until 12
  EXPECT_EQ(Saved(0, 10), 10 + 2 + 7 + 3);
}

TEST_F(CheckpointTimesTest, OperationsBeforeThePreviousCheckpointDoNotCount) {
  AddRank({Call(0), Compute(0, 3), Compute(0, 20, 1), Call(1), Compute(0, 4)}, {2, 5});
  EndCollective(0, 50);
  EXPECT_EQ(Saved(0, 0), 53);
  EXPECT_EQ(Saved(1, 53), kNeverPs);
  EndCollective(1, 90);
  EXPECT_EQ(Saved(1, 53), 94);
}

TEST_F(CheckpointTimesTest, TheLastRankDecides) {
  AddRank({Compute(0, 5)}, {1});
  AddRank({Compute(0, 6), Compute(0, 3)}, {2});
  AddRank({Compute(0, 7)}, {1});
  EXPECT_EQ(Saved(0, 1000), 1009);
}

TEST_F(CheckpointTimesTest, RanksWithoutCheckpointsDoNotCount) {
  AddRank({Compute(0, 500)}, {});
  EXPECT_EQ(Saved(0, 20), 20);
  AddRank({Compute(0, 5)}, {1});
  EXPECT_EQ(Saved(0, 20), 25);
}

TEST_F(CheckpointTimesTest, LongComputationEndsAfterTheEndOfTime) {
  AddRank({Compute(0, kTimeEndPs), Compute(0, kTimeEndPs)}, {2});
  EXPECT_EQ(Saved(0, 0), kAfterEndPs);
}

}  // namespace
}  // namespace railyard
