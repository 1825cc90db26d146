// SPDX-License-Identifier: GPL-2.0-only
// Reports messages of composed flows in the order in which they were posted, in whichever order
// their parts finish.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

#include "simulator/state/field_table.h"
#include "simulator/transport/contract/message_sink.h"

namespace railyard {

// Holds the messages of one flow that are not reported both as delivered and as completed. They are
// numbered from 0 in the order in which they are added.
template <class Message>
struct InOrderReports {
  std::deque<Message> open{};  // the first is number first_number
  uint64_t first_number = 0;
  uint32_t delivered = 0;  // of `open`, reported
  uint32_t completed = 0;

  // Adds a message and returns its number.
  uint64_t Add(Message message) {
    open.push_back(std::move(message));
    return end_number() - 1;
  }
  // Precondition: the message is among `open`.
  Message& at(uint64_t number) { return open[number - first_number]; }
  const Message& at(uint64_t number) const { return open[number - first_number]; }
  // Returns the number of the next message that is added.
  uint64_t end_number() const { return first_number + open.size(); }
  // Returns the number of the first message that is not reported as delivered.
  uint64_t delivered_end() const { return first_number + delivered; }

  // Calls the user for the messages that are next in order, as long as is_delivered(message) and
  // then as long as is_completed(message) returns true. Calls before_delivery(number) before it
  // reports a message as delivered. The callbacks may add messages; while they run, no message is
  // removed unless they call this function.
  template <class IsDelivered, class IsCompleted, class BeforeDelivery>
  void Report(const SinkRef& user, const IsDelivered& is_delivered, const IsCompleted& is_completed,
              const BeforeDelivery& before_delivery) {
    while (delivered < open.size() && is_delivered(open[delivered])) {
      const uint64_t number = delivered_end();
      ++delivered;
      before_delivery(number);
      user.sink->OnDelivered(user.number);
    }
    while (completed < open.size() && is_completed(open[completed])) {
      ++completed;
      user.sink->OnCompleted(user.number);
    }
    while (delivered > 0 && completed > 0) {
      open.pop_front();
      ++first_number;
      --delivered;
      --completed;
    }
  }
  template <class IsDelivered, class IsCompleted>
  void Report(const SinkRef& user, const IsDelivered& is_delivered,
              const IsCompleted& is_completed) {
    Report(user, is_delivered, is_completed, [](uint64_t /*number*/) {});
  }

  static constexpr auto Fields() {
    constexpr std::string_view kNumbers = "what follows counts on from there";
    return FieldTable("messages in order", field::Quiescent("open", &InOrderReports::open),
                      field::NoState("first_number", &InOrderReports::first_number, kNumbers),
                      field::Idle("delivered", &InOrderReports::delivered),
                      field::Idle("completed", &InOrderReports::completed));
  }
};

}  // namespace railyard
