// SPDX-License-Identifier: GPL-2.0-only
// Matrices of iterations, and how far apart they are, in small jobs of one server. Operations that
// begin an iteration say so.
#include "simulator/run/iteration_recorder.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class IterationRecorderTest : public ReplayFixture {
 protected:
  TrafficResult Record() {
    RunResult result;
    for (const JobCollective& collective : job_.collectives) {
      result.collectives.emplace_back().kind = collective.is_all_to_all_v ? "AllToAllv"
                                               : collective.is_p2p()      ? "SendRecv"
                                                                          : "AllReduce";
    }
    IterationRecorder(scenario_, job_, *replay_, result).Record();
    EXPECT_THAT(result.notes, IsEmpty());
    return std::move(result.traffic);
  }
  // Ranks exchange so many bytes in one group, by sender and receiver.
  using Matrix = std::vector<std::tuple<uint32_t, uint32_t, uint64_t>>;
  void Exchange(Programs& programs, uint32_t group, const Matrix& matrix) {
    std::vector<bool> has_begun(programs.size());
    const auto add = [&](uint32_t rank, TraceOperation operation) {
      operation.begins_iteration = group > 1 && !has_begun[rank];
      has_begun[rank] = true;
      programs[rank].push_back(operation);
    };
    for (const auto& [from, to, bytes] : matrix) {
      add(from, Send(to, bytes, group));
      add(to, Recv(from, bytes, group));
    }
  }
  // Each matrix is an iteration.
  TrafficResult RecordExchanges(const std::vector<Matrix>& matrices) {
    Programs programs = Idle();
    uint32_t group = 0;
    for (const Matrix& matrix : matrices) Exchange(programs, ++group, matrix);
    Build(JobOf({{0, 1, 2, 3}}, programs));
    Run();
    return Record();
  }

  Scenario scenario_;
};

// A ring of two sends half of the buffer each way to reduce and half to gather: 2 MiB each way,
// and twice that with two calls.
TEST_F(IterationRecorderTest, TheMatrixIsThatOfTheSchedules) {
  constexpr uint64_t kFloats = 1 << 19;
  Programs programs = Idle();
  programs[0] = programs[1] = {AllReduce(kFloats), AllReduce(kFloats), AllReduce(kFloats)};
  for (auto& program : programs) {
    if (!program.empty()) program[2].begins_iteration = true;
  }
  Build(JobOf({{0, 1}}, programs));
  Run();
  const TrafficResult traffic = Record();
  std::vector<std::tuple<uint64_t, uint32_t, uint32_t, uint64_t>> rows;
  for (const IterationPairResult& row : traffic.iteration_pairs) {
    EXPECT_EQ(row.kind, "AllReduce");
    EXPECT_EQ(row.layer, IterationPairResult::kNoLayer);
    rows.emplace_back(row.iteration, row.source_gpu, row.destination_gpu, row.payload_bytes);
  }
  EXPECT_THAT(rows, ElementsAre(FieldsAre(1, 0, 1, 8 * kFloats), FieldsAre(1, 1, 0, 8 * kFloats),
                                FieldsAre(2, 0, 1, 4 * kFloats), FieldsAre(2, 1, 0, 4 * kFloats)));
  ASSERT_THAT(traffic.iterations, SizeIs(2));
  EXPECT_EQ(traffic.iterations[0].drift, std::nullopt);
  EXPECT_EQ(traffic.iterations[1].drift, 0.0) << "the shares are equal";
  EXPECT_EQ(traffic.iterations[1].all_to_all_drift, std::nullopt);
  EXPECT_EQ(traffic.iterations[1].all_to_all_imbalance, std::nullopt);
}

// Shares 1/4 and 3/4 after 1/2 and 1/2 are 1/4 away; then no pair is in common.
TEST_F(IterationRecorderTest, DriftIsTheDistanceOfShares) {
  const TrafficResult traffic = RecordExchanges({{{0, 1, 1'000}, {2, 3, 1'000}},
                                                 {{0, 1, 1'000}, {2, 3, 3'000}},
                                                 {{0, 1, 10'000}, {2, 3, 30'000}},
                                                 {{1, 0, 500}, {3, 2, 500}}});
  ASSERT_THAT(traffic.iterations, SizeIs(4));
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(traffic.iterations[i].iteration, i + 1);
  EXPECT_EQ(traffic.iterations[0].drift, std::nullopt);
  EXPECT_DOUBLE_EQ(traffic.iterations[1].drift.value(), 0.25);
  EXPECT_DOUBLE_EQ(traffic.iterations[2].drift.value(), 0);
  EXPECT_DOUBLE_EQ(traffic.iterations[3].drift.value(), 1);
}

TEST_F(IterationRecorderTest, WhatARankSendsItselfIsInNoMatrix) {
  const TrafficResult traffic = RecordExchanges({{{0, 1, 700}, {0, 0, 9'000}, {1, 0, 0}}});
  ASSERT_THAT(traffic.iteration_pairs, SizeIs(1));
  EXPECT_EQ(traffic.iteration_pairs[0].payload_bytes, 700u);
  EXPECT_EQ(traffic.iteration_pairs[0].kind, "SendRecv");
}

// The second one of two iterations does not end.
TEST_F(IterationRecorderTest, OnlyIterationsThatEndedAreRecorded) {
  Programs programs = Idle();
  programs[0] = programs[1] = {AllReduce(1'024), AllReduce(1'024, kPsPerMs)};
  Build(JobOf({{0, 1}}, programs));
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  Run();
  const TrafficResult traffic = Record();
  ASSERT_THAT(traffic.iterations, SizeIs(1));
  for (const IterationPairResult& row : traffic.iteration_pairs) EXPECT_EQ(row.iteration, 1u);
}

// --- AllToAlls -----------------------------------------------------------------------------------

class AllToAllsTest : public IterationRecorderTest {
 protected:
  // Three ranks exchange these bytes as AllToAllvs, an iteration each.
  TrafficResult RecordAllToAlls(const std::vector<Matrix>& matrices) {
    Programs programs = Idle();
    uint32_t number = 0;
    for (const Matrix& matrix : matrices) {
      Exchange(programs, ++number, matrix);
      for (auto& program : programs) {
        for (TraceOperation& operation : program) {
          if (operation.group == number) operation.all_to_all = number;
        }
      }
    }
    Build(JobOf({{0, 1, 2}}, programs));
    Run();
    return Record();
  }
};

// Rank 0 receives 5,000 B, which is the most; the three send 6,000 B, so 2,000 B on average.
TEST_F(AllToAllsTest, ImbalanceIsTheBusiestRankOverTheMean) {
  const TrafficResult traffic = RecordAllToAlls(
      {{{1, 0, 3'000}, {2, 0, 2'000}, {0, 1, 1'000}},
       {{0, 1, 100}, {0, 2, 100}, {1, 0, 100}, {1, 2, 100}, {2, 0, 100}, {2, 1, 100}}});
  ASSERT_THAT(traffic.iterations, SizeIs(2));
  EXPECT_DOUBLE_EQ(traffic.iterations[0].all_to_all_imbalance.value(), 2.5);
  EXPECT_DOUBLE_EQ(traffic.iterations[1].all_to_all_imbalance.value(), 1);
  // The first one's shares are 1/2, 1/3 and 1/6; the second one's are six of 1/6.
  EXPECT_DOUBLE_EQ(traffic.iterations[1].all_to_all_drift.value(), 0.5);
  EXPECT_DOUBLE_EQ(traffic.iterations[1].drift.value(), 0.5);
}

}  // namespace
}  // namespace railyard::testing
