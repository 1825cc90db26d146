// SPDX-License-Identifier: GPL-2.0-only
// Models how the two ends of a connection detect that a failed port carries packets again (NCCL
// 2.30, src/transport/net_ib/p2p_resiliency_recovery.cc). Each end begins a start delay after its
// own device has failed:
//
// - The sender sends five "alive" messages over an unreliable connection of that port and waits for
//   an answer until the time-out. It repeats this as often as attempts are allowed.
// - The receiver counts the messages that arrive in order. After more than five, so with the second
//   batch at the earliest, it makes new queue pairs and answers. It gives up after the same number
//   of attempts, each a time-out without a message or without the confirmation. The first attempt
//   is counted when it begins, unless messages have arrived by then, because the receiver's clock
//   starts at 0.
// - The sender uses the device again as soon as the answer arrives, and confirms it. The receiver
//   uses it again as soon as the confirmation arrives.
#pragma once

#include <cstdint>
#include <functional>

#include "simulator/transport/connections/net_ib_settings.h"

namespace railyard {

// Implements the recovery protocol of one device of one connection.
class PortRecovery {
 public:
  // Holds the functions that the protocol calls. `put_back` puts the device back into use at one
  // end.
  struct Hooks {
    std::function<void(bool to_receiver, uint32_t immediate)> send;
    std::function<void(int64_t delay_ps, std::function<void()> what)> after;
    std::function<int64_t()> now_ps;
    std::function<void()> renew_queue_pairs;
    std::function<void(bool at_sender)> put_back;
  };
  PortRecovery(const NetIbSettings& settings, Hooks hooks);

  // Starts the protocol at one end, whose device has just failed.
  void Begin(bool at_sender);
  // Called when an end receives a message of the protocol.
  void OnMessage(bool at_receiver, uint32_t immediate);
  // Returns whether neither end is trying, or going to try, to put the device back into use.
  bool IsIdle() const { return sender_.state == State::kIdle && receiver_.state == State::kIdle; }

 private:
  enum class State : uint8_t {
    kIdle,      // the device works, or is permanently out of use
    kWaits,     // for the start delay
    kTries,     // sends alive messages, or counts them
    kAnswered,  // receiver: waits for the confirmation
  };
  struct End {
    State state = State::kIdle;
    uint32_t round = 0;  // of Begin(): calls scheduled in an earlier round have no effect
    uint32_t attempts = 0;
    uint32_t next_id = 0;  // of the next alive message: to be sent, or expected
    uint32_t in_order = 0;
    uint32_t waiting = 0;  // receiver: messages that arrived during the start delay
    uint32_t first_waiting_id = 0;
    int64_t last_message_ps = 0;
  };

  void After(End& end, int64_t delay_ps, void (PortRecovery::*what)());
  // Returns false if it was the last attempt.
  bool CountAttempt(End& end) const;
  void SendBatch();
  void OnAnswerTimeout();
  void StartReceiver();
  void OnAlive(uint32_t id);
  void WatchForAlive();
  void OnAliveTimeout();
  void OnConfirmationTimeout();

  NetIbSettings settings_;
  Hooks hooks_;
  End sender_;
  End receiver_;
};

}  // namespace railyard
