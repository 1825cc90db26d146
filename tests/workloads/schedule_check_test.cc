// SPDX-License-Identifier: GPL-2.0-only
// Wrong schedules are reported, and the report says what is wrong.
#include "workloads/collectives/schedule_check.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/checked_schedules.h"
#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::CheckP2p;
using ::railyard::testing::Collective;
using ::railyard::testing::Nodes;
using ::railyard::testing::PlanRing;
using ::testing::HasSubstr;

TEST(CheckSchedule, ReportsMessagesOfDifferentSize) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 1'000}};
  calls[9] = {{false, RankIndex{0}, 1'001}};
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kSend, 0}, calls),
              HasSubstr("receives 1001 B at offset 0 where rank 0 sent 1000 B"));
}

TEST(CheckSchedule, ReportsAMessageThatNobodyReceives) {
  const NcclPlanner planner(Nodes(2, 8), {});
  std::vector<std::vector<P2pCall>> calls(16);
  calls[0] = {{true, RankIndex{9}, 1'000}};
  EXPECT_THAT(CheckP2p(planner, {CollectiveKind::kSend, 0}, calls),
              HasSubstr("rank 9 never receives 1 of the messages of rank 0"));
}

// A right schedule with some steps changed, for as many steps as `step_count` leaves.
class Broken final : public CollectiveSchedule {
 public:
  using Change = std::function<void(const LaneId&, uint64_t, Step&)>;
  Broken(std::shared_ptr<const CollectiveSchedule> inner, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {}

  uint32_t rank_count() const override { return inner_->rank_count(); }
  uint32_t channel_count() const override { return inner_->channel_count(); }
  const MessageRule& message_rule() const override { return inner_->message_rule(); }
  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override {
    return inner_->BatchCount(rank, channel);
  }
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override {
    return inner_->LaneCount(rank, channel, batch);
  }
  LanePeers PeersOf(const LaneId& lane) const override { return inner_->PeersOf(lane); }
  uint64_t StepCount(const LaneId& lane) const override {
    return inner_->StepCount(lane) - (lane.rank == dropped_rank ? 1 : 0);
  }
  Step StepAt(const LaneId& lane, uint64_t index) const override {
    Step step = inner_->StepAt(lane, index + (lane.rank == dropped_rank && drop_first ? 1 : 0));
    if (change_) change_(lane, index, step);
    return step;
  }

  uint32_t dropped_rank = UINT32_MAX;  // does one step less: its last,
  bool drop_first = false;             // or its first

 private:
  std::shared_ptr<const CollectiveSchedule> inner_;
  Change change_;
};

constexpr uint64_t kBytes = 4096;

Broken BreakOneChannel(CollectiveKind kind, Broken::Change change) {
  NcclSettings settings;
  settings.max_nchannels = 1;
  return Broken(PlanRing(NcclPlanner(Nodes(1, 4), settings), Collective(kind, kBytes)),
                std::move(change));
}

std::string Check(const Broken& schedule, CollectiveKind kind) {
  return CheckSchedule({kind, kBytes}, 4,
                       [&](uint32_t) -> const CollectiveSchedule& { return schedule; });
}

TEST(CheckSchedule, ReportsADroppedLastStep) {
  Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce, nullptr);
  schedule.dropped_rank = 2;
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("rank 2 never receives 1 of the messages of rank 1"));
}

TEST(CheckSchedule, ReportsADroppedFirstStep) {
  Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce, nullptr);
  schedule.dropped_rank = 2;
  schedule.drop_first = true;
  EXPECT_NE(Check(schedule, CollectiveKind::kAllReduce), "");
}

TEST(CheckSchedule, ReportsAContributionLeftOut) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 1)
                                              step.reduce = step.load_local = false;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("without the contribution of rank 1"));
}

TEST(CheckSchedule, ReportsAContributionAddedTwice) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 5)
                                              step.reduce = step.load_local = true;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce),
              HasSubstr("rank 1, channel 0, batch 0, lane 0, step 5: adds the contribution of rank "
                        "1 a second time"));
}

TEST(CheckSchedule, ReportsAWrongOffset) {
  const Broken schedule = BreakOneChannel(CollectiveKind::kAllReduce,
                                          [](const LaneId& lane, uint64_t index, Step& step) {
                                            if (lane.rank == 1 && index == 0)
                                              step.offset_bytes += 16;
                                          });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce), HasSubstr("where rank 1 sent"));
}

TEST(CheckSchedule, ReportsAWrongSize) {
  const Broken schedule =
      BreakOneChannel(CollectiveKind::kReduceScatter, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 3) step.bytes -= 1;
      });
  EXPECT_THAT(Check(schedule, CollectiveKind::kReduceScatter), HasSubstr("4095 B"));
}

TEST(CheckSchedule, ReportsADeadlock) {
  // Nobody sends before it has received.
  const Broken schedule = BreakOneChannel(
      CollectiveKind::kAllReduce, [](const LaneId& lane, uint64_t index, Step& step) {
        if (index == 0) {
          step.recv_from = static_cast<int32_t>((lane.rank + 3) % 4);
          step.reduce = true;
        }
      });
  EXPECT_THAT(Check(schedule, CollectiveKind::kAllReduce), HasSubstr("waits for ever"));
}

TEST(CheckSchedule, ReportsAResultStoredNeverOrTwice) {
  const Broken never =
      BreakOneChannel(CollectiveKind::kBroadcast, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 2) step.store = false;
      });
  EXPECT_THAT(Check(never, CollectiveKind::kBroadcast),
              HasSubstr("rank 2 never stores the bytes from 0 on"));
  const Broken twice =
      BreakOneChannel(CollectiveKind::kAllReduce, [](const LaneId&, uint64_t, Step& step) {
        if (step.offset_bytes == 3072) step.offset_bytes = 0;
      });
  EXPECT_THAT(Check(twice, CollectiveKind::kAllReduce),
              HasSubstr("rank 0 stores bytes from 0 on twice"));
}

TEST(CheckSchedule, ReportsWhatIsStoredOutsideTheResult) {
  const Broken schedule =
      BreakOneChannel(CollectiveKind::kReduceScatter, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 0 && step.store) step.offset_bytes += kBytes;
        if (lane.rank == 3 && step.offset_bytes == 0) step.offset_bytes += kBytes;
      });
  EXPECT_NE(Check(schedule, CollectiveKind::kReduceScatter), "");
  const Broken beyond =
      BreakOneChannel(CollectiveKind::kAllReduce,
                      [](const LaneId&, uint64_t, Step& step) { step.offset_bytes += kBytes; });
  EXPECT_THAT(Check(beyond, CollectiveKind::kAllReduce), HasSubstr("of a buffer of 4096 B"));
  const Broken reduce =
      BreakOneChannel(CollectiveKind::kReduce, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 3) step.store = true;
      });
  EXPECT_THAT(Check(reduce, CollectiveKind::kReduce),
              HasSubstr("stores 4096 B at offset 0 without the contribution of rank 0"));
}

TEST(CheckSchedule, ReportsBlocksOfTheWrongRank) {
  const Broken load = BreakOneChannel(CollectiveKind::kAllGather,
                                      [](const LaneId& lane, uint64_t index, Step& step) {
                                        if (lane.rank == 1 && index == 0) step.offset_bytes = 0;
                                      });
  EXPECT_THAT(Check(load, CollectiveKind::kAllGather), HasSubstr("outside its own block"));
  const Broken source =
      BreakOneChannel(CollectiveKind::kBroadcast, [](const LaneId& lane, uint64_t, Step& step) {
        if (lane.rank == 0) step.store = false;
        if (lane.rank == 1) step.recv_from = kNoPeer, step.load_local = true;
      });
  EXPECT_THAT(Check(source, CollectiveKind::kBroadcast), HasSubstr("not of the root 0"));
}

TEST(CheckSchedule, ReportsStepsThatMakeNoSense) {
  const auto first_step = [](const std::function<void(Step&)>& change) {
    return Check(BreakOneChannel(CollectiveKind::kAllReduce,
                                 [change](const LaneId& lane, uint64_t index, Step& step) {
                                   if (lane.rank == 1 && index == 0) change(step);
                                 }),
                 CollectiveKind::kAllReduce);
  };
  EXPECT_THAT(first_step([](Step& step) { step.send_to = 4; }), HasSubstr("not another rank"));
  EXPECT_THAT(first_step([](Step& step) { step.send_to = 1; }), HasSubstr("not another rank"));
  EXPECT_THAT(first_step([](Step& step) { step.reduce = true; }), HasSubstr("reduces without"));
  EXPECT_THAT(first_step([](Step& step) { step.load_local = false; }), HasSubstr("has no data"));
  EXPECT_THAT(first_step([](Step& step) { step.recv_from = 0; }), HasSubstr("without reducing"));
  EXPECT_THAT(first_step([](Step& step) {
                step.load_local = false;
                step.load_kept = true;
              }),
              HasSubstr("loads offset 0, where it has kept nothing"));
  EXPECT_THAT(first_step([](Step& step) { step.pieces = 3; }),
              HasSubstr("divides 1024 B among 3 pieces"));
  EXPECT_THAT(first_step([](Step& step) {
                step.pieces = 2;
                step.stride_bytes = 2048;
              }),
              HasSubstr("receives 1 pieces 0 B apart where rank 1 sent 2, 2048 B apart"));
}

}  // namespace
}  // namespace railyard
