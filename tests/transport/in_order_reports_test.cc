// SPDX-License-Identifier: GPL-2.0-only
// Messages that finish in any order: the order of their reports, what callbacks may do, and what is
// held.
#include "simulator/transport/connections/in_order_reports.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/state/state_archive.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InOrderReportsTest : public ::testing::Test, public MessageSink {
 protected:
  struct Finished {
    bool is_delivered = false;
    bool is_completed = false;
  };

  void Add(int count) {
    for (; count > 0; --count) reports_.Add({});
  }
  // Reports what is due and returns the callbacks of it.
  std::vector<std::string> Report() {
    calls_.clear();
    reports_.Report(
        {this, 7}, [](const Finished& message) { return message.is_delivered; },
        [](const Finished& message) { return message.is_completed; },
        [this](uint64_t number) { calls_.push_back("before " + std::to_string(number)); });
    return calls_;
  }
  std::vector<std::string> Deliver(uint64_t number) {
    reports_.at(number).is_delivered = true;
    return Report();
  }
  std::vector<std::string> Complete(uint64_t number) {
    reports_.at(number).is_completed = true;
    return Report();
  }
  bool IsQuiescent() {
    StateArchive archive(0);
    VisitFields(reports_, archive);
    EXPECT_THAT(archive.TakeState().values, IsEmpty()) << "a snapshot holds none of it";
    return archive.is_quiescent();
  }

  void OnDelivered(uint32_t user) override {
    EXPECT_EQ(user, 7u);
    calls_.emplace_back("delivered");
    if (on_delivered_) on_delivered_();
  }
  void OnCompleted(uint32_t user) override {
    EXPECT_EQ(user, 7u);
    calls_.emplace_back("completed");
  }
  void OnPacketLost(uint32_t /*user*/, const FlowLoss& /*loss*/) override { ADD_FAILURE(); }
  void OnFailed(uint32_t /*user*/, bool /*at_sender*/, const FlowError& /*error*/) override {
    ADD_FAILURE();
  }

  InOrderReports<Finished> reports_;
  std::vector<std::string> calls_;
  std::function<void()> on_delivered_;
};

TEST_F(InOrderReportsTest, AMessageWaitsForThoseBeforeIt) {
  Add(3);
  EXPECT_THAT(Deliver(2), IsEmpty());
  EXPECT_THAT(Complete(1), IsEmpty());
  EXPECT_THAT(Deliver(0), ElementsAre("before 0", "delivered"));
  EXPECT_THAT(Report(), IsEmpty()) << "each is reported once";
  EXPECT_THAT(Deliver(1), ElementsAre("before 1", "delivered", "before 2", "delivered"));
  EXPECT_EQ(reports_.delivered_end(), 3u);
  EXPECT_THAT(Complete(0), ElementsAre("completed", "completed"));
}

TEST_F(InOrderReportsTest, DeliveriesAreReportedBeforeCompletions) {
  Add(2);
  for (uint64_t number = 0; number < 2; ++number) reports_.at(number) = {true, true};
  EXPECT_THAT(Report(), ElementsAre("before 0", "delivered", "before 1", "delivered", "completed",
                                    "completed"));
}

TEST_F(InOrderReportsTest, AMessageIsHeldUntilBothAreReported) {
  EXPECT_EQ(reports_.Add({}), 0u);
  EXPECT_FALSE(IsQuiescent()) << "a message is under way";
  Complete(0);
  EXPECT_EQ(reports_.open.size(), 1u);
  EXPECT_EQ(reports_.Add({}), 1u);
  Deliver(0);
  EXPECT_EQ(reports_.open.size(), 1u);
  EXPECT_EQ(reports_.first_number, 1u);
  Deliver(1);
  Complete(1);
  EXPECT_TRUE(IsQuiescent());
  EXPECT_EQ(reports_.Add({}), 2u) << "numbers count on";
  EXPECT_EQ(reports_.end_number(), 3u);
  EXPECT_EQ(reports_.delivered_end(), 2u);
}

TEST_F(InOrderReportsTest, ACallbackMayAddAMessageThatIsDueAtOnce) {
  Add(1);
  on_delivered_ = [this] {
    if (reports_.end_number() == 3) return;
    reports_.at(reports_.Add({})).is_delivered = true;
  };
  EXPECT_THAT(Deliver(0), ElementsAre("before 0", "delivered", "before 1", "delivered", "before 2",
                                      "delivered"));
}

TEST_F(InOrderReportsTest, ACallbackMayReport) {
  Add(2);
  on_delivered_ = [this] {
    if (reports_.at(1).is_delivered) return;
    reports_.at(1) = {true, true};
    reports_.Report(
        {this, 7}, [](const Finished& message) { return message.is_delivered; },
        [](const Finished& message) { return message.is_completed; });
  };
  reports_.at(0).is_completed = true;
  EXPECT_THAT(Deliver(0),
              ElementsAre("before 0", "delivered", "delivered", "completed", "completed"));
  EXPECT_THAT(reports_.open, IsEmpty());
}

}  // namespace
}  // namespace railyard
