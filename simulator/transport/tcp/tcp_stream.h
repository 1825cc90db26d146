// SPDX-License-Identifier: GPL-2.0-only
// What a TCP stream knows that a queue pair does not: which segments beyond a gap have come
// (RFC 2018), which are lost (RFC 6675, 8985), how long to wait for an acknowledgement (RFC 6298,
// with Linux's bounds) and what the receiver has room for (RFC 9293). Sequence numbers count
// segments, as those of queue pairs count packets.
//
// Not modelled: the handshake (a stream begins with one sample of the path's round trip); a timer
// for ACKs that are held back (whatever ends a message is answered at once); tail loss probes and
// RACK's timer (RFC 8985), so that what is lost at the end waits for the time-out; proportional
// rate reduction (RFC 6937); Nagle's algorithm (NCCL sets TCP_NODELAY); a receive buffer that grows
// with use; ECN, which Linux does not ask for by default (tcp_ecn = 2).
#pragma once

#include <cstdint>
#include <deque>

#include "simulator/units/units.h"

namespace railyard {

// Linux: TCP_RTO_MIN, TCP_RTO_MAX (include/net/tcp.h), tcp_retries2 (ip-sysctl): a stream gives up
// when it has been sending again for as long as 15 back-offs from 200 ms, of which those from the
// tenth on are of 120 s, would take: 204.6 s + 6 x 120 s.
inline constexpr int64_t kTcpRtoMinPs = 200 * kPsPerMs;
inline constexpr int64_t kTcpRtoMaxPs = 120 * kPsPerSecond;
inline constexpr int64_t kTcpGiveUpPs = 924'600 * kPsPerMs;
// Linux: the send buffer's largest size, tcp_wmem[2] (ip-sysctl). What the kernel keeps besides the
// payload is left out of it.
inline constexpr uint64_t kTcpSendBufferBytes = 4u << 20;
// Linux: of the receive buffer's largest size, tcp_rmem[2] of 6 MiB, half is offered as a window
// (tcp_adv_win_scale = 1).
inline constexpr uint64_t kTcpWindowBytes = 3u << 20;
// Linux: after a silence longer than a time-out, and at the beginning, a receiver answers so many
// segments one by one: the sender has started again (tcp_event_data_recv, net/ipv4/tcp_input.c;
// TCP_MAX_QUICKACKS).
inline constexpr uint32_t kTcpQuickAcks = 16;
// A segment is lost when so many behind it have come (RFC 6675, DupThresh).
inline constexpr uint32_t kDuplicateThreshold = 3;

// Of a sending end: its segments from the oldest unacknowledged to the newest sent.
class TcpScoreboard {
 public:
  void OnSend() { segments_.push_back({.order = next_order_++}); }  // a new one
  void OnAcknowledged(uint32_t count);                              // the oldest so many
  // The receiver has those from `begin` to before `end`, counted from the oldest.
  void OnSelective(uint32_t begin, uint32_t end);
  // Takes for lost what kDuplicateThreshold later ones have overtaken, once, and repetitions that
  // something sent after them has overtaken (RFC 8985, without a reordering window, as when nothing
  // was ever reordered); true: there is such.
  bool MarkLost();
  // The timer ran out: all that the receiver is not known to have is lost.
  void MarkAllLost();
  // The first lost one, which is sent again now. Precondition: lost() > 0.
  uint32_t TakeLost();

  uint32_t sacked() const { return sacked_; }
  uint32_t lost() const { return lost_; }  // and not sent again
  // RFC 6675's pipe.
  uint32_t InFlight() const { return static_cast<uint32_t>(segments_.size()) - sacked_ - lost_; }

 private:
  static constexpr uint8_t kSacked = 1;
  static constexpr uint8_t kLost = 2;
  static constexpr uint8_t kRepeated = 4;

  struct Segment {
    uint32_t order = 0;  // of its latest transmission among all
    uint8_t flags = 0;
  };
  struct Repetition {
    uint32_t order = 0;
    uint32_t position = 0;  // of the segment, counting all ever sent
  };
  void NoteDelivered(const Segment& segment);

  std::deque<Segment> segments_;
  std::deque<Repetition> repetitions_;  // in order; some may have come since
  uint32_t next_order_ = 0;
  uint32_t delivered_order_ = 0;  // one past the latest transmission that has come
  uint32_t acknowledged_ = 0;     // ever
  uint32_t sacked_ = 0;
  uint32_t lost_ = 0;
  uint32_t sacked_end_ = 0;   // one past the highest that is sacked
  uint32_t examined_ = 0;     // so many were looked at by MarkLost()
  uint32_t repeat_from_ = 0;  // none before this is lost
};

// The retransmission time-out.
class TcpTimeout {
 public:
  void OnRoundTrip(int64_t rtt_ps);
  void BackOff() { ++back_offs_; }
  void EndBackOff() { back_offs_ = 0; }
  int64_t TimeoutPs() const;

 private:
  int64_t smoothed_ps_ = -1;
  int64_t variation_ps_ = 0;
  uint32_t back_offs_ = 0;
};

// Of a receiving end: which segments from the expected one on are here.
class TcpReassembly {
 public:
  struct Taken {
    bool is_new = false;
    uint32_t advanced = 0;   // so far the expected one moved
    uint32_t completed = 0;  // messages that end there
  };
  // A segment came in `distance` behind the expected one.
  Taken Take(uint32_t distance, bool is_last_of_message);
  bool HasGap() const { return !here_.empty(); }
  // The block of segments that holds the one at `distance`, from the expected one on.
  struct Block {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  Block BlockAt(uint32_t distance) const;

 private:
  static constexpr uint8_t kHere = 1;
  static constexpr uint8_t kLast = 2;

  std::deque<uint8_t> here_;  // the first is the expected one's
};

struct TcpSender {
  TcpScoreboard scoreboard;
  TcpTimeout timeout;
  uint32_t congestion_packets = 1;
  uint32_t offered_end = 0;   // one past the last segment that the receiver has room for
  uint32_t recovery_end = 0;  // of the loss that the window was last cut for
  bool in_recovery = false;
  int64_t event_ps = kNeverPs;   // of its timer's next event; others are ignored
  int64_t first_repeat_ps = -1;  // since the last progress, by the timer
};

struct TcpReceiver {
  // A segment came in: whether it is to be answered alone.
  bool IsQuick(int64_t now_ps) {
    if (last_segment_ps < 0 || now_ps - last_segment_ps > kTcpRtoMinPs) quick_acks = kTcpQuickAcks;
    last_segment_ps = now_ps;
    if (quick_acks == 0) return false;
    --quick_acks;
    return true;
  }

  TcpReassembly reassembly;
  bool is_read_by_hand = false;  // else by itself, as it comes
  uint32_t read_end = 0;         // one past the last segment that the application has read
  uint32_t offered_end = 0;      // as the last ACK said
  uint32_t quick_acks = 0;       // left
  int64_t last_segment_ps = -1;  // when it came
  int64_t timestamp_ps = 0;      // of the newest segment in order, which ACKs echo (RFC 7323)
};

// What an ACK of a stream says besides the expected segment, in the 64 bits there are for it.
struct TcpAckWord {
  uint32_t offered_end = 0;
  uint16_t block_begin = 0;  // from the expected segment on; both 0: no block
  uint16_t block_end = 0;

  uint64_t Pack() const {
    return uint64_t{block_end} << 48 | uint64_t{block_begin} << 32 | offered_end;
  }
  static TcpAckWord Unpack(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint16_t>(word >> 32),
            static_cast<uint16_t>(word >> 48)};
  }
};

}  // namespace railyard
