// SPDX-License-Identifier: GPL-2.0-only
// Samples of the messages of a small job: mostly GPUs 0 and 8, on two servers, make AllReduces.
#include "simulator/run/transfer_sampler.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class TransferSamplerTest : public ReplayFixture {
 protected:
  static constexpr uint64_t kFloats = 1 << 20;

  TransferSamplerTest() : ReplayFixture(2) {}

  // The two GPUs make three AllReduces.
  void BuildFor(uint32_t first, uint32_t second) {
    Programs programs = Idle();
    programs[first] = programs[second] =
        std::vector<TraceOperation>(3, AllReduce(kFloats, kPsPerMs));
    Build(JobOf({{first, second}}, programs));
  }

  static RunResult ResultOf(const TransferSampler& sampler) {
    RunResult result;
    sampler.AddTo(result);
    return result;
  }
  using Known = std::tuple<int64_t, int64_t, int64_t, uint32_t, uint32_t, uint32_t>;
  static std::multiset<Known> SetOf(const RunResult& result) {
    std::multiset<Known> known;
    for (const TransferResult& t : result.transfers) {
      known.emplace(t.ready_ps, t.posted_ps, t.acknowledged_ps, t.source_gpu, t.collective,
                    t.bytes);
    }
    return known;
  }
};

// A ring of two sends half of the buffer each way to reduce and half to gather, per call.
TEST_F(TransferSamplerTest, ASampleThatIsLargeEnoughHasEveryMessage) {
  BuildFor(0, 8);
  TransferSampler sampler(*replay_);
  sampler.Start();
  Run();
  const RunResult result = ResultOf(sampler);
  EXPECT_EQ(result.transfers_seen, result.transfers.size());
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> bytes_of_pair;
  std::map<uint32_t, uint64_t> bytes_of_collective;
  int64_t before_ps = 0;
  for (const TransferResult& transfer : result.transfers) {
    bytes_of_pair[{transfer.source_gpu, transfer.destination_gpu}] += transfer.bytes;
    bytes_of_collective[transfer.collective] += transfer.bytes;
    EXPECT_GE(transfer.ready_ps, before_ps);
    before_ps = transfer.ready_ps;
    EXPECT_GE(transfer.ready_ps, TimesOf(transfer.collective).first_start_ps);
    EXPECT_GE(transfer.posted_ps, transfer.ready_ps);
    EXPECT_GT(transfer.acknowledged_ps, transfer.posted_ps);
  }
  constexpr uint64_t kCallBytes = 4 * kFloats;
  EXPECT_THAT(bytes_of_pair,
              ElementsAre(Pair(Pair(0, 8), 3 * kCallBytes), Pair(Pair(8, 0), 3 * kCallBytes)));
  EXPECT_THAT(bytes_of_collective, ElementsAre(Pair(0, 2 * kCallBytes), Pair(1, 2 * kCallBytes),
                                               Pair(2, 2 * kCallBytes)));
}

// A message is in a sample if its hash is among the smallest.
TEST_F(TransferSamplerTest, ASmallSampleIsPartOfEachLargerOne) {
  BuildFor(0, 8);
  TransferSampler five(*replay_, 5);
  TransferSampler twenty(*replay_, 20);
  TransferSampler all(*replay_);
  for (TransferSampler* sampler : {&five, &twenty, &all}) sampler->Start();
  Run();
  const auto of_five = SetOf(ResultOf(five));
  const auto of_twenty = SetOf(ResultOf(twenty));
  const auto of_all = SetOf(ResultOf(all));
  EXPECT_THAT(of_five, SizeIs(5));
  EXPECT_THAT(of_twenty, SizeIs(20));
  ASSERT_GT(of_all.size(), 20u);
  EXPECT_TRUE(std::ranges::includes(of_twenty, of_five));
  EXPECT_TRUE(std::ranges::includes(of_all, of_twenty));
  EXPECT_EQ(ResultOf(five).transfers_seen, of_all.size());
}

TEST_F(TransferSamplerTest, AStoppedSamplerKeepsWhatItHas) {
  BuildFor(0, 8);
  TransferSampler sampler(*replay_);
  sampler.Start();
  replay_->hooks().on_collective = [&](CollectiveIndex collective, bool has_ended) {
    if (collective == 0 && has_ended) sampler.Stop();
  };
  Run();
  const RunResult result = ResultOf(sampler);
  EXPECT_GT(result.transfers.size(), 0u);
  for (const TransferResult& transfer : result.transfers) EXPECT_EQ(transfer.collective, 0u);
}

TEST_F(TransferSamplerTest, MessagesOverNvlinkAreNoTransfers) {
  BuildFor(0, 1);
  TransferSampler sampler(*replay_);
  sampler.Start();
  Run();
  EXPECT_TRUE(replay_->is_complete());
  EXPECT_EQ(ResultOf(sampler).transfers_seen, 0u);
  EXPECT_THAT(ResultOf(sampler).transfers, IsEmpty());
}

}  // namespace
}  // namespace railyard::testing
