// SPDX-License-Identifier: GPL-2.0-only
// Explanations of stalls that were made by hand: ranks of a server, all in AllReduce #0.
#include "simulator/replay/streams/wait_explainer.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WaitExplainerTest : public ::testing::Test {
 protected:
  WaitExplainerTest() {
    for (GlobalRank rank{0}; rank < 8; ++rank) stall_.running.push_back({GlobalRank{rank}, 0});
  }
  // Its operation has the rank's number.
  void Waits(uint32_t rank, uint32_t peer, bool for_data = true) {
    LaneExecutor::Waiting& wait = stall_.lanes.emplace_back();
    wait.operation = RunningIndex{rank};
    wait.rank = RankIndex{rank};
    wait.peer = RankIndex{peer};
    wait.for_data = for_data;
  }
  std::string Explain() const { return WaitExplainer(graph_, calls_, stall_).Explain(); }

  FabricGraph graph_ = Servers(1);
  Job job_ = JobOf({{0, 1, 2, 3, 4, 5, 6, 7}}, Programs(8, {AllReduce(8), AllReduce(8)}));
  CallTable calls_{job_};
  WaitExplainer::Stall stall_;
};

TEST_F(WaitExplainerTest, RanksThatWaitForOneAnother) {
  Waits(0, 1);
  Waits(1, 0, false);
  EXPECT_THAT(Explain(),
              StartsWith("in AllReduce #0 of communicator comm0: rank 0 waits for data from rank 1 "
                         "on channel 0 -> rank 1 waits for a free slot of rank 0 on channel 0 -> "
                         "rank 0 again: they wait for one another\n"));
}

TEST_F(WaitExplainerTest, AQueuePairThatWaitsForALink) {
  Waits(0, 1);
  stall_.lanes[0].is_under_way = true;
  stall_.lanes[0].transport = "7 of rank 1";
  stall_.lanes[0].obstacles = {"nic0--leaf0 is down"};
  const std::string text = Explain();
  EXPECT_THAT(text, HasSubstr("channel 0 -> queue pair 7 of rank 1 -> nic0--leaf0 is down\n"));
  EXPECT_THAT(text,
              HasSubstr("rank 0 in AllReduce #0 of communicator comm0 waits for data from rank "
                        "1 on channel 0; 7 of rank 1\n"));
}

TEST_F(WaitExplainerTest, AGpuThatStandsStill) {
  Waits(0, 1);
  stall_.is_gpu_stopped = {false, true};
  const std::string stands = graph_.device(graph_.gpus()[1]).name + ", rank 1, stands still\n";
  EXPECT_THAT(Explain(), HasSubstr("on channel 0 -> " + stands));
  EXPECT_THAT(Explain(), HasSubstr("\n" + stands)) << "and on a line of its own";
}

TEST_F(WaitExplainerTest, ARankThatHasNotBegun) {
  Waits(0, 1);
  EXPECT_THAT(Explain(), HasSubstr("-> rank 1, which waits for nobody\n"));
  stall_.pending = {{GlobalRank{1}, 1}};
  const std::string idle = "rank 1 has not begun AllReduce #1 of communicator comm0\n";
  EXPECT_THAT(Explain(), HasSubstr("-> " + idle));
  EXPECT_THAT(Explain(), HasSubstr("\n" + idle));
}

// The longest chain to a cause is shown, without its middle.
TEST_F(WaitExplainerTest, ALongChainIsShownByItsEnds) {
  for (GlobalRank rank{0}; rank < 7; ++rank) Waits(rank, rank + 1);
  const std::string text = Explain();
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, HasSubstr("rank 0 waits for data from rank 1"));
  EXPECT_THAT(first,
              HasSubstr("rank 2 waits for data from rank 3 on channel 0 -> 1 more -> rank 4"));
  EXPECT_THAT(first, Not(HasSubstr("rank 3 waits")));
  EXPECT_THAT(first, HasSubstr("rank 6 waits for data from rank 7 on channel 0 -> rank 7, which"));
}

// Two warps of each rank wait. Those that take results wait in a circle, because those that send
// wait for rank 2.
TEST_F(WaitExplainerTest, ACircleOutOfWhichACauseCanBeReachedIsNoCircle) {
  Waits(0, 1);
  Waits(0, 2);
  Waits(1, 0);
  const std::string text = Explain();
  EXPECT_THAT(text, StartsWith("in AllReduce #0 of communicator comm0: rank 0 waits for data from "
                               "rank 1 on channel 0 -> rank 1 waits for data from rank 0 on "
                               "channel 0 -> rank 0 waits for data from rank 2 on channel 0 -> "
                               "rank 2, which waits for nobody\n"));
  EXPECT_THAT(text, Not(HasSubstr("again")));
}

TEST_F(WaitExplainerTest, ACircleIsShownOnceAndBesideOtherCauses) {
  Waits(0, 1);
  Waits(1, 0);
  Waits(2, 0);
  Waits(3, 4);
  const std::string text = Explain();
  EXPECT_THAT(text, HasSubstr("rank 3 waits for data from rank 4 on channel 0 -> rank 4, which"));
  EXPECT_THAT(text, HasSubstr("-> rank 0 again: they wait for one another\n"));
  EXPECT_EQ(text.find("again"), text.rfind("again"));
}

}  // namespace
}  // namespace railyard::testing
