// SPDX-License-Identifier: GPL-2.0-only
// The traffic of small jobs: flows are made by hand, and links are on while the replay runs
// collectives.
#include "simulator/run/traffic_ledger.h"

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TrafficLedgerTest : public ReplayFixture {
 protected:
  static constexpr uint64_t kFloats = 1 << 10;

  // A receiver has taken so many bytes of collective 0.
  void Take(uint32_t from, uint32_t to, uint32_t channel, uint64_t bytes) {
    ConnectionTable& table = replay_->executor().connection_table();
    const ConnectionId id = table.Between(CommunicatorIndex{0}, channel, RankIndex{from},
                                          RankIndex{to}, ConnectionUse::kRing);
    table.connection(id).collective = CollectiveIndex{0};
    table.taken_bytes(id) = bytes;
  }
  RunResult Record() const {
    RunResult result;
    result.links.resize(graph_.link_count());
    TrafficLedger(job_, replay_->executor().connection_table(), graph_.link_count())
        .Record(job_, *replay_, result);
    return result;
  }
  std::vector<std::pair<uint64_t, uint64_t>> MessageSizes() const {
    std::vector<std::pair<uint64_t, uint64_t>> sizes;
    for (const MessageSizeResult& row : Record().traffic.message_sizes) {
      sizes.emplace_back(row.bytes, row.count);
    }
    return sizes;
  }
};

// Three quarters and a quarter have 2 - 3/4 log2 3 bits.
TEST_F(TrafficLedgerTest, FlowsOfALinkAreItsConnectionsWithPayload) {
  Build(JobOf({{0, 1, 2}}, {{AllReduce(kFloats)}, {AllReduce(kFloats)}, {AllReduce(kFloats)}}));
  Take(0, 1, 0, 3'000);
  Take(0, 2, 0, 1'000);
  Take(0, 1, 1, 0);
  Take(1, 0, 0, 5'000);
  const RunResult result = Record();
  const LinkResult& from_first = result.links[NvlinkFrom(0)];
  EXPECT_EQ(from_first.flows, 2u);
  EXPECT_NEAR(from_first.flow_entropy_bits, 2 - 0.75 * std::log2(3), 1e-12);
  EXPECT_EQ(result.links[NvlinkFrom(1)].flows, 1u);
  EXPECT_EQ(result.links[NvlinkFrom(1)].flow_entropy_bits, 0.0);
  EXPECT_EQ(result.links[NvlinkFrom(2)].flows, 0u);
  EXPECT_EQ(from_first.load.bursts, 0u) << "no collective has run";
}

// Rank 1 comes to each call 20 us late.
TEST_F(TrafficLedgerTest, ALinkIsOnFromTheLastRanksStartToTheLastRanksEnd) {
  Programs programs = Idle();
  programs[0] = {AllReduce(kFloats), AllReduce(kFloats)};
  programs[1] = {AllReduce(kFloats, 20 * kPsPerUs), AllReduce(kFloats, 20 * kPsPerUs)};
  programs[2] = programs[3] = {AllReduce(kFloats, kPsPerMs, 1)};
  Build(JobOf({{0, 1}, {2, 3}}, programs));
  Run();
  const RunResult result = Record();
  std::vector<CollectiveTimes> of_first;
  std::vector<CollectiveTimes> of_second;
  for (uint32_t i = 0; i < 3; ++i) {
    (job_.collectives[i].communicator == 0 ? of_first : of_second).push_back(TimesOf(i));
  }
  const OnOffLoad& load = result.links[NvlinkFrom(0)].load;
  EXPECT_EQ(load.bursts, 2u);
  EXPECT_EQ(load.on_ps, of_first[0].last_end_ps - of_first[0].last_start_ps +
                            of_first[1].last_end_ps - of_first[1].last_start_ps);
  EXPECT_EQ(load.period_ps, of_first[1].last_start_ps - of_first[0].last_start_ps);
  const OnOffLoad& other = result.links[NvlinkFrom(2)].load;
  EXPECT_EQ(other.bursts, 1u);
  EXPECT_EQ(other.on_ps, of_second[0].last_end_ps - of_second[0].last_start_ps);
  EXPECT_EQ(result.links[NvlinkFrom(4)].load.bursts, 0u);
}

// Ranks 0 and 2 send once each, 1 ms apart, on one communicator.
TEST_F(TrafficLedgerTest, SendsCountForTheLinksOfTheGpusThatTakePart) {
  Programs programs = Idle();
  programs[0] = {Send(1, 100'000)};
  programs[1] = {Recv(0, 100'000)};
  programs[2] = {Send(3, 200'000, 0, kPsPerMs)};
  programs[3] = {Recv(2, 200'000, 0, kPsPerMs)};
  Build(JobOf({{0, 1, 2, 3}}, programs));
  Run();
  const RunResult result = Record();
  for (const GlobalRank sender : {GlobalRank{0}, GlobalRank{2}}) {
    const CollectiveIndex collective = job_.CollectiveOf(sender, job_.operations[sender][0]);
    const OnOffLoad& load = result.links[NvlinkFrom(sender)].load;
    EXPECT_EQ(load.bursts, 1u);
    EXPECT_EQ(load.on_ps, TimesOf(collective).last_end_ps - TimesOf(collective).last_start_ps);
  }
}

// Rank 0 sends to itself too, which is no message; rank 1 sends it 900 B twice.
TEST_F(TrafficLedgerTest, AMessageIsACollectiveOrASendToAnotherRank) {
  Programs programs = Idle();
  programs[0] = {AllReduce(kFloats), Send(0, 500, 1), Recv(0, 500, 1),
                 Send(1, 700, 1),    Recv(1, 900, 1), Recv(1, 900, 2)};
  programs[1] = {AllReduce(kFloats), Recv(0, 700, 1), Send(0, 900, 1), Send(0, 900, 2)};
  Build(JobOf({{0, 1}}, programs));
  EXPECT_THAT(MessageSizes(), IsEmpty());
  Run();
  EXPECT_THAT(MessageSizes(),
              ElementsAre(std::pair(700, 1), std::pair(900, 2), std::pair(4 * kFloats, 1)));
}

TEST_F(TrafficLedgerTest, OnlyMessagesOfCollectivesThatEndedCount) {
  Programs programs = Idle();
  programs[0] = programs[1] = {AllReduce(kFloats), AllReduce(2 * kFloats, kPsPerMs)};
  Build(JobOf({{0, 1}}, programs));
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  Run();
  EXPECT_THAT(MessageSizes(), ElementsAre(std::pair(4 * kFloats, 1)));
  EXPECT_EQ(Record().links[NvlinkFrom(0)].load.bursts, 1u);
}

}  // namespace
}  // namespace railyard::testing
