// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/connections/port_recovery.h"

#include <utility>

namespace railyard {
namespace {

// NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE.
constexpr uint32_t kBatch = 5;
// NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE_MAX: receives that are posted.
constexpr uint32_t kReceives = 10;
// NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_MSG_ID. Ids of alive messages are far smaller.
constexpr uint32_t kAnswer = 0x1234;

}  // namespace

PortRecovery::PortRecovery(const NetIbSettings& settings, Hooks hooks)
    : settings_(settings), hooks_(std::move(hooks)) {}

void PortRecovery::After(End& end, int64_t delay_ps, void (PortRecovery::*what)()) {
  hooks_.after(delay_ps, [this, &end, what, round = end.round] {
    if (end.round == round) (this->*what)();
  });
}

bool PortRecovery::CountAttempt(End& end) const {
  if (++end.attempts < settings_.recovery_attempts_max) return true;
  end.state = State::kIdle;
  return false;
}

void PortRecovery::Begin(bool at_sender) {
  End& end = at_sender ? sender_ : receiver_;
  end = {.state = State::kWaits, .round = end.round + 1};
  After(end, settings_.recovery_start_delay_ps,
        at_sender ? &PortRecovery::SendBatch : &PortRecovery::StartReceiver);
}

void PortRecovery::OnMessage(bool at_receiver, uint32_t immediate) {
  if (!at_receiver) {
    if (sender_.state != State::kTries) return;
    sender_.state = State::kIdle;
    hooks_.put_back(true);
    hooks_.send(true, kAnswer);
    return;
  }
  switch (receiver_.state) {
    case State::kIdle:  // no receive is posted
      return;
    case State::kWaits:
      if (receiver_.waiting == kReceives || immediate == kAnswer) return;
      if (receiver_.waiting++ == 0) receiver_.first_waiting_id = immediate;
      return;
    case State::kTries:
      if (immediate != kAnswer) OnAlive(immediate);
      return;
    case State::kAnswered:
      if (immediate != kAnswer) return;
      receiver_.state = State::kIdle;
      hooks_.put_back(false);
      return;
  }
}

// --- Sender --------------------------------------------------------------------------------------

void PortRecovery::SendBatch() {
  sender_.state = State::kTries;
  for (uint32_t i = 0; i < kBatch; ++i) hooks_.send(true, sender_.next_id++);
  After(sender_, settings_.recovery_ack_timeout_ps, &PortRecovery::OnAnswerTimeout);
}

void PortRecovery::OnAnswerTimeout() {
  if (sender_.state == State::kTries && CountAttempt(sender_)) SendBatch();
}

// --- Receiver ------------------------------------------------------------------------------------

void PortRecovery::StartReceiver() {
  receiver_.state = State::kTries;
  receiver_.last_message_ps = hooks_.now_ps();
  if (receiver_.waiting == 0 && !CountAttempt(receiver_)) return;
  for (uint32_t i = 0; i < receiver_.waiting; ++i) OnAlive(receiver_.first_waiting_id + i);
  WatchForAlive();
}

void PortRecovery::OnAlive(uint32_t id) {
  if (receiver_.state != State::kTries) return;
  receiver_.in_order = id == receiver_.next_id ? receiver_.in_order + 1 : 0;
  receiver_.next_id = id + 1;
  receiver_.last_message_ps = hooks_.now_ps();
  if (receiver_.in_order <= kBatch) return;
  receiver_.state = State::kAnswered;
  hooks_.renew_queue_pairs();
  hooks_.send(false, kAnswer);
  After(receiver_, settings_.recovery_ack_timeout_ps, &PortRecovery::OnConfirmationTimeout);
}

void PortRecovery::WatchForAlive() {
  if (receiver_.state != State::kTries) return;
  const int64_t due_ps = receiver_.last_message_ps + settings_.recovery_alive_msg_timeout_ps;
  After(receiver_, due_ps - hooks_.now_ps(), &PortRecovery::OnAliveTimeout);
}

void PortRecovery::OnAliveTimeout() {
  if (receiver_.state != State::kTries) return;
  const int64_t now_ps = hooks_.now_ps();
  if (now_ps - receiver_.last_message_ps >= settings_.recovery_alive_msg_timeout_ps) {
    if (!CountAttempt(receiver_)) return;
    receiver_.last_message_ps = now_ps;
  }
  WatchForAlive();
}

void PortRecovery::OnConfirmationTimeout() {
  if (receiver_.state != State::kAnswered || !CountAttempt(receiver_)) return;
  receiver_.state = State::kTries;
  receiver_.in_order = 0;
  receiver_.last_message_ps = hooks_.now_ps();
  WatchForAlive();
}

}  // namespace railyard
