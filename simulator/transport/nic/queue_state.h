// SPDX-License-Identifier: GPL-2.0-only
// Defines the plain records of queue pairs. A queue pair has two queues, each a reliable stream. A
// queue has a sending end at one NIC and a receiving end at another. All fields that a packet or an
// ACK accesses are in one cache line per end; the others are stored separately.
#pragma once

#include <cstdint>
#include <string_view>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/congestion/congestion_control_base.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/message_ring.h"
#include "simulator/transport/nic/queue_id.h"
#include "simulator/transport/nic/queue_paths.h"

namespace railyard {

// Describes the sending end of a queue.
struct alignas(64) SendQueue {
  static constexpr uint32_t kNone = UINT32_MAX;

  static constexpr uint8_t kActive = 1;        // in its port's ring, or waiting to be
  static constexpr uint8_t kTimerPending = 2;  // an event of the timer is pending
  static constexpr uint8_t kBroken = 4;
  static constexpr uint8_t kHasLost = 8;       // the fabric has lost packets; not yet repaired
  static constexpr uint8_t kHasRepeated = 16;  // has sent packets again since that loss
  static constexpr uint8_t kPaced = 32;        // its rate is limited: see Pacer
  static constexpr uint8_t kHasRepairs = 64;   // packets to be sent again out of turn: see Repair
  static constexpr uint8_t kHasFlags = 128;    // some message's payload contains flags

  bool Is(uint8_t flag) const { return (flags & flag) != 0; }
  void Set(uint8_t flag) { flags |= flag; }
  void Clear(uint8_t flag) { flags &= static_cast<uint8_t>(~flag); }
  PathRef path() const { return {first_link, hop_count}; }

  uint32_t first_link = 0;  // of the path, in the network's table
  uint8_t hop_count = 0;
  uint8_t flags = 0;
  uint8_t retries = 0;
  uint8_t nic_kind = 0;  // of the NIC that sends: NicKinds
  uint32_t port = kNone;
  QueueId next_active = QueueId::kNone;
  uint32_t window_packets = 0;
  uint32_t next_sequence = 0;   // to be sent next
  uint32_t unacknowledged = 0;  // oldest
  uint32_t sent_end = 0;        // one past the highest ever sent
  uint32_t posted_end = 0;      // one past the last packet of the last message
  // This message contains next_sequence. If next_sequence is its end, the next message is due.
  MessageRing::Message message;
  uint32_t oldest_end = 0;  // of the oldest message not acknowledged completely, if there is one
  int64_t timer_start_ps = 0;

  static constexpr auto Fields() {
    // A pending timer without anything to wait for has no effect. kHasFlags only tells where to
    // look up the sizes of further messages.
    const auto is_idle = [](uint8_t set) { return (set & ~(kTimerPending | kHasFlags)) == 0; };
    return FieldTable(
        "sending end", field::Fixed("first_link", &SendQueue::first_link),
        field::Fixed("hop_count", &SendQueue::hop_count),
        field::QuiescentIf("flags", &SendQueue::flags, is_idle),
        field::Value("retries", &SendQueue::retries),
        field::Constant("nic_kind", &SendQueue::nic_kind), field::Fixed("port", &SendQueue::port),
        field::NoState("next_active", &SendQueue::next_active,
                       "the queue sets it when it joins its port's ring"),
        field::Constant("window_packets", &SendQueue::window_packets),
        field::Follows("next_sequence", &SendQueue::next_sequence, &SendQueue::posted_end),
        field::Follows("unacknowledged", &SendQueue::unacknowledged, &SendQueue::posted_end),
        field::Follows("sent_end", &SendQueue::sent_end, &SendQueue::posted_end),
        field::Count("posted_end", &SendQueue::posted_end),
        field::NoState("message", &SendQueue::message,
                       "QueueTransport::VisitEnds moves it along with posted_end"),
        field::NoState("oldest_end", &SendQueue::oldest_end, "the next message posted sets it"),
        field::NoState("timer_start_ps", &SendQueue::timer_start_ps,
                       "the next packet sent sets it, for it is then the oldest"));
  }
};
static_assert(sizeof(SendQueue) == 64);

// Holds the fields of a sending end that are accessed once per message or loss.
struct SendBacklog {
  MessageRing messages;
  uint32_t next_message = 0;  // position of the message after the one being sent
  uint32_t loss_end = 0;      // of the loss not yet repaired: sequences below this

  static constexpr auto Fields() {
    const auto has_sent_all = [](const SendBacklog& backlog) {
      return backlog.next_message == backlog.messages.end();
    };
    return FieldTable("backlog", field::Idle("messages", &SendBacklog::messages),
                      field::IdleIf("next_message", &SendBacklog::next_message, has_sent_all),
                      field::NoState("loss_end", &SendBacklog::loss_end,
                                     "it is read only while SendQueue::kHasLost is set"));
  }
};

// Holds the pacing state of a data queue whose rate is limited.
struct Pacer {
  int64_t next_send_ps = 0;
  uint64_t rate_bps = SendLimits::kNoLimit;
  int64_t full_packet_ps = 0;  // of a packet of the MTU that does not begin a message, at that rate

  static constexpr auto Fields() {
    constexpr std::string_view kUnpaced = "it is set before it is read when the queue is paced";
    return FieldTable("pacer", field::NoState("next_send_ps", &Pacer::next_send_ps, kUnpaced),
                      field::Idle("rate_bps", &Pacer::rate_bps, SendLimits::kNoLimit),
                      field::NoState("full_packet_ps", &Pacer::full_packet_ps, kUnpaced));
  }
};

// Holds the retransmission state of a sending queue with selective repeat.
struct Repair {
  uint64_t repeat = 0;     // bit i: packet unacknowledged + i is to be sent again
  uint32_t requested = 0;  // number of packets from unacknowledged on whose losses were repeated

  static constexpr auto Fields() {
    return FieldTable("repair", field::Idle("repeat", &Repair::repeat),
                      field::Idle("requested", &Repair::requested));
  }
};

// Describes the receiving end of a queue.
struct alignas(64) ReceiveQueue {
  // Packets are kept up to this distance beyond a gap; a NACK has one bit for each.
  static constexpr uint32_t kBeyondPackets = 64;

  PathRef ack_path() const { return {ack_first_link, ack_hop_count}; }

  uint32_t ack_first_link = 0;
  uint8_t ack_hop_count = 0;
  bool nack_sent = false;
  bool refused = false;    // packets too far beyond the gap were dropped, from first_refused on
  bool is_broken = false;  // accepts nothing
  uint32_t expected = 0;
  uint32_t unreported = 0;  // packets accepted, or received again, since the last ACK
  uint32_t receives = 0;    // posted for messages not yet in memory
  uint16_t marked = 0;      // packets that arrived marked since the last ACK
  uint8_t reported = 0;     // number of packets from expected on whose gaps were reported
  int64_t next_cnp_ps = 0;  // the earliest time of the next CNP
  uint64_t beyond = 0;      // bit i: packet expected + 1 + i has arrived
  uint64_t ends = 0;        // the same, and it is the last of its message
  uint32_t first_refused = 0;
  uint32_t missing = 0;  // packets that the message beginning at missing_of goes without
  uint32_t missing_of = 0;
  uint32_t ack_every_packets = 1;  // an ACK at least so often

  static constexpr auto Fields() {
    return FieldTable(
        "receiving end", field::Fixed("ack_first_link", &ReceiveQueue::ack_first_link),
        field::Fixed("ack_hop_count", &ReceiveQueue::ack_hop_count),
        field::Quiescent("nack_sent", &ReceiveQueue::nack_sent),
        field::Quiescent("refused", &ReceiveQueue::refused),
        field::Idle("is_broken", &ReceiveQueue::is_broken),
        field::NoState("expected", &ReceiveQueue::expected,
                       "QueueTransport::VisitEnds compares it with SendQueue::posted_end"),
        field::Value("unreported", &ReceiveQueue::unreported),
        field::Value("receives", &ReceiveQueue::receives),
        field::Value("marked", &ReceiveQueue::marked),
        field::Instant("next_cnp_ps", &ReceiveQueue::next_cnp_ps),
        field::Quiescent("beyond", &ReceiveQueue::beyond),
        field::Quiescent("ends", &ReceiveQueue::ends),
        field::Quiescent("reported", &ReceiveQueue::reported),
        field::NoState("first_refused", &ReceiveQueue::first_refused,
                       "it is read only while `refused` is set"),
        field::Fixed("missing", &ReceiveQueue::missing),
        field::Fixed("missing_of", &ReceiveQueue::missing_of),
        field::Fixed("ack_every_packets", &ReceiveQueue::ack_every_packets));
  }
};
static_assert(sizeof(ReceiveQueue) == 64);

// Names the ends and the user of a queue pair, which both its queues share.
struct QueuePair : PairEnds {
  SinkRef user;
};

}  // namespace railyard
