// SPDX-License-Identifier: GPL-2.0-only
// Constructs the protocol between two ends alone, with a wire of 1 us that may lose messages.
// Expected instants are sums of the settings and of the wire's latency.
#include "simulator/transport/connections/port_recovery.h"

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kWirePs = kPsPerUs;
constexpr int64_t kStartPs = 100 * kPsPerUs;
constexpr int64_t kAnswerPs = 10 * kPsPerUs;
constexpr int64_t kAlivePs = 40 * kPsPerUs;
constexpr uint32_t kAttempts = 3;
constexpr uint32_t kBatch = 5;

class RecoveryProtocolTest : public ::testing::Test {
 protected:
  RecoveryProtocolTest() : recovery_(Settings(), HooksOfTest()) {}

  static NetIbSettings Settings() {
    NetIbSettings settings;
    settings.recovery_start_delay_ps = kStartPs;
    settings.recovery_ack_timeout_ps = kAnswerPs;
    settings.recovery_alive_msg_timeout_ps = kAlivePs;
    settings.recovery_attempts_max = kAttempts;
    return settings;
  }
  PortRecovery::Hooks HooksOfTest() {
    return {
        .send =
            [this](bool to_receiver, uint32_t immediate) {
              sent_.emplace_back(to_receiver, now_ps_);
              if (loses_ && loses_(to_receiver, immediate)) return;
              At(now_ps_ + kWirePs,
                 [this, to_receiver, immediate] { recovery_.OnMessage(to_receiver, immediate); });
            },
        .after = [this](int64_t delay_ps,
                        std::function<void()> what) { At(now_ps_ + delay_ps, std::move(what)); },
        .now_ps = [this] { return now_ps_; },
        .renew_queue_pairs = [this] { renewed_.push_back(now_ps_); },
        .put_back = [this](bool at_sender) { put_back_.emplace_back(at_sender, now_ps_); }};
  }
  void At(int64_t time_ps, std::function<void()> what) {
    pending_.emplace(time_ps, std::move(what));
  }
  void Run() {
    while (!pending_.empty()) {
      auto next = pending_.extract(pending_.begin());
      now_ps_ = next.key();
      next.mapped()();
    }
  }
  std::vector<int64_t> SentToReceiver() const {
    std::vector<int64_t> times;
    for (const auto& [to_receiver, time_ps] : sent_) {
      if (to_receiver) times.push_back(time_ps);
    }
    return times;
  }

  std::function<bool(bool to_receiver, uint32_t immediate)> loses_;
  int64_t now_ps_ = 0;
  std::multimap<int64_t, std::function<void()>> pending_;
  std::vector<std::pair<bool, int64_t>> sent_;
  std::vector<std::pair<bool, int64_t>> put_back_;
  std::vector<int64_t> renewed_;
  PortRecovery recovery_;
};

// More than five messages in order take a second batch. The answer goes back to the sender, and the
// confirmation to the receiver.
TEST_F(RecoveryProtocolTest, ThePortIsPutBackAfterTheSecondBatch) {
  recovery_.Begin(true);
  recovery_.Begin(false);
  EXPECT_FALSE(recovery_.IsIdle());
  Run();
  const int64_t second_ps = kStartPs + kAnswerPs;
  EXPECT_THAT(renewed_, ElementsAre(second_ps + kWirePs));
  EXPECT_THAT(put_back_, ElementsAre(std::pair(true, second_ps + 2 * kWirePs),
                                     std::pair(false, second_ps + 3 * kWirePs)));
  EXPECT_EQ(SentToReceiver().size(), 2 * kBatch + 1);
  EXPECT_TRUE(recovery_.IsIdle());
}

// The messages that arrive while the receiver still waits for its start are counted when it starts.
TEST_F(RecoveryProtocolTest, MessagesBeforeTheReceiversStartCount) {
  recovery_.Begin(true);
  At(2 * kWirePs, [this] { recovery_.Begin(false); });
  Run();
  EXPECT_THAT(renewed_, ElementsAre(kStartPs + kAnswerPs + kWirePs));
}

TEST_F(RecoveryProtocolTest, ALostMessageStartsTheCountOver) {
  loses_ = [](bool to_receiver, uint32_t immediate) { return to_receiver && immediate == 3; };
  recovery_.Begin(true);
  recovery_.Begin(false);
  Run();
  // Message 4 comes out of order. Messages 5 to 9 are five, and the first of the third batch is one
  // more.
  EXPECT_THAT(renewed_, ElementsAre(kStartPs + 2 * kAnswerPs + kWirePs));
}

TEST_F(RecoveryProtocolTest, BothEndsGiveUpAfterTheirAttempts) {
  loses_ = [](bool /*to_receiver*/, uint32_t /*immediate*/) { return true; };
  recovery_.Begin(true);
  recovery_.Begin(false);
  Run();
  EXPECT_THAT(put_back_, IsEmpty());
  EXPECT_EQ(SentToReceiver().size(), kAttempts * kBatch);
  EXPECT_EQ(SentToReceiver().back(), kStartPs + (kAttempts - 1) * kAnswerPs);
  EXPECT_TRUE(recovery_.IsIdle());
  // The receiver's first attempt counts when it begins.
  EXPECT_EQ(now_ps_, kStartPs + (kAttempts - 1) * kAlivePs);
}

// A second failure during the start delay begins a new round: the first round's calls do nothing.
TEST_F(RecoveryProtocolTest, ANewFailureBeginsANewRound) {
  recovery_.Begin(true);
  recovery_.Begin(false);
  At(kStartPs / 2, [this] {
    recovery_.Begin(true);
    recovery_.Begin(false);
  });
  Run();
  EXPECT_EQ(SentToReceiver().front(), kStartPs / 2 + kStartPs);
  EXPECT_EQ(put_back_.size(), 2u);
}

// Without its confirmation the receiver waits for the time-out and counts again. The sender does
// not send any more, so the receiver gives up.
TEST_F(RecoveryProtocolTest, AReceiverWithoutTheConfirmationGivesUp) {
  bool is_answered = false;
  loses_ = [&](bool to_receiver, uint32_t /*immediate*/) {
    if (!to_receiver) is_answered = true;
    return to_receiver && is_answered;
  };
  recovery_.Begin(true);
  recovery_.Begin(false);
  Run();
  ASSERT_EQ(put_back_.size(), 1u);
  EXPECT_TRUE(put_back_.front().first);
  EXPECT_TRUE(recovery_.IsIdle());
}

}  // namespace
}  // namespace railyard
