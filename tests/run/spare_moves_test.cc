// SPDX-License-Identifier: GPL-2.0-only
// Moves to spares among servers of two GPUs each: server s has the GPUs 2 s and 2 s + 1.
#include "simulator/run/spare_moves.h"

#include <cstdint>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/job/job_parts.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr uint32_t kServers = 5;

class SpareMovesTest : public ::testing::Test {
 protected:
  SpareMovesTest() {
    GrowTo(2 * kServers, job_);
    for (GpuIndex gpu{0}; gpu < 2 * kServers; ++gpu) {
      gpus_of_server_[ServerIndex{gpu / 2}].push_back(gpu);
    }
  }

  // Each of the ranks computes for as many picoseconds as its number.
  void AddPart(const std::vector<uint32_t>& ranks) {
    job_.parts.push_back({.name = "job", .global_ranks = GlobalRanksOf(ranks)});
    for (const GlobalRank rank : job_.parts.back().global_ranks) {
      job_.operations[rank] = {{.compute_before_ps = rank}};
    }
  }
  SpareMoves Move(uint32_t part, const std::vector<uint32_t>& broken) {
    return MoveToSpares(gpus_of_server_, {broken.begin(), broken.end()}, PartIndex{part}, spares_,
                        job_);
  }

  GpusOfServers gpus_of_server_;
  std::vector<ServerIndex> spares_;
  Job job_;
};

TEST_F(SpareMovesTest, ASpareTakesTheRanksOfABrokenServer) {
  AddPart({0, 1, 2, 3});
  spares_ = {ServerIndex{4}, ServerIndex{3}};
  const SpareMoves moves = Move(0, {1});
  EXPECT_THAT(moves.swapped, ElementsAre(Pair(2u, 8u), Pair(3u, 9u)));
  EXPECT_EQ(moves.servers_replaced, 1u);
  EXPECT_THAT(spares_, ElementsAre(1, 3));
  EXPECT_THAT(job_.parts[0].global_ranks, ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(job_.operations[GlobalRank{2}], IsEmpty());
  EXPECT_EQ(job_.operations[GlobalRank{9}][0].compute_before_ps, 3);
}

TEST_F(SpareMovesTest, ARankKeepsItsPlaceInTheServer) {
  AddPart({0, 3});
  spares_ = {ServerIndex{4}};
  EXPECT_THAT(Move(0, {1}).swapped, ElementsAre(Pair(3u, 9u)));
}

TEST_F(SpareMovesTest, BrokenSparesArePassedOver) {
  AddPart({0, 1});
  spares_ = {ServerIndex{3}, ServerIndex{4}};
  EXPECT_THAT(Move(0, {0, 3}).swapped, ElementsAre(Pair(0u, 8u), Pair(1u, 9u)));
  EXPECT_THAT(spares_, ElementsAre(3, 0));
}

TEST_F(SpareMovesTest, TheFirstBrokenServersGetTheSpares) {
  AddPart({0, 1, 2, 3});
  spares_ = {ServerIndex{4}};
  const SpareMoves moves = Move(0, {0, 1});
  EXPECT_THAT(moves.swapped, ElementsAre(Pair(0u, 8u), Pair(1u, 9u)));
  EXPECT_EQ(moves.servers_replaced, 1u);
  EXPECT_THAT(spares_, ElementsAre(0));
}

TEST_F(SpareMovesTest, RanksOfOtherJobsStay) {
  AddPart({0, 2});
  AddPart({3, 4});
  spares_ = {ServerIndex{4}};
  EXPECT_THAT(Move(0, {2}).swapped, IsEmpty());
  EXPECT_THAT(Move(0, {1}).swapped, ElementsAre(Pair(2u, 8u)));
  EXPECT_THAT(job_.parts[1].global_ranks, ElementsAre(3, 4));
}

TEST_F(SpareMovesTest, ASpareMustBeFreeWhereTheRanksAreToBe) {
  AddPart({0, 3});
  AddPart({8});  // has come first
  spares_ = {ServerIndex{4}};
  EXPECT_THAT(Move(0, {0}).swapped, IsEmpty());
  EXPECT_THAT(spares_, ElementsAre(4));
  EXPECT_THAT(Move(0, {1}).swapped, ElementsAre(Pair(3u, 9u)));
}

TEST_F(SpareMovesTest, AServerThatHasBeenRepairedIsASpare) {
  AddPart({0, 1});
  spares_ = {ServerIndex{4}};
  Move(0, {0});
  EXPECT_THAT(Move(0, {4}).swapped, ElementsAre(Pair(8u, 0u), Pair(9u, 1u)));
  EXPECT_THAT(spares_, ElementsAre(4));
}

TEST_F(SpareMovesTest, ABrokenServerWithoutGpusMovesNothing) {
  AddPart({0, 1});
  spares_ = {ServerIndex{4}};
  const SpareMoves moves = Move(0, {kServers});
  EXPECT_THAT(moves.swapped, IsEmpty());
  EXPECT_EQ(moves.servers_replaced, 0u);
}

}  // namespace
}  // namespace railyard
