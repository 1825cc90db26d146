// SPDX-License-Identifier: GPL-2.0-only
// Implements the state of a TCP stream that a queue pair does not have: which segments beyond a gap
// have arrived (RFC 2018), which are lost (RFC 6675, 8985), the retransmission time-out (RFC 6298,
// with Linux's bounds) and the receive window (RFC 9293). Sequence numbers count segments, as those
// of queue pairs count packets.
//
// Not modelled: the handshake (a stream begins with one sample of the path's round trip); a timer
// for delayed ACKs (the end of a message is acknowledged at once); tail loss probes and RACK's
// timer (RFC 8985), so losses at the end wait for the time-out; proportional rate reduction (RFC
// 6937); Nagle's algorithm (NCCL sets TCP_NODELAY); a receive buffer that grows with use; ECN,
// which Linux does not request by default (tcp_ecn = 2).
#pragma once

#include <cstdint>
#include <deque>

#include "simulator/units/units.h"

namespace railyard {

// These values are Linux's TCP_RTO_MIN, TCP_RTO_MAX (include/net/tcp.h) and tcp_retries2
// (ip-sysctl). A stream gives up after the time without progress that 15 back-offs from 200 ms
// take. The tenth and later ones last 120 s, so this time is 204.6 s + 6 x 120 s.
inline constexpr int64_t kTcpRtoMinPs = 200 * kPsPerMs;
inline constexpr int64_t kTcpRtoMaxPs = 120 * kPsPerSecond;
inline constexpr int64_t kTcpGiveUpPs = 924'600 * kPsPerMs;
// This is Linux's maximum size of the send buffer, tcp_wmem[2] (ip-sysctl). The kernel's overhead
// besides the payload is neglected.
inline constexpr uint64_t kTcpSendBufferBytes = 4u << 20;
// Linux offers half of the receive buffer's maximum size, tcp_rmem[2] of 6 MiB, as a window
// (tcp_adv_win_scale = 1).
inline constexpr uint64_t kTcpWindowBytes = 3u << 20;
// A Linux receiver acknowledges this many segments one by one at the start and after a silence
// longer than a time-out, since the sender has then restarted (tcp_event_data_recv,
// net/ipv4/tcp_input.c; TCP_MAX_QUICKACKS).
inline constexpr uint32_t kTcpQuickAcks = 16;
// A segment is lost when this many later ones have arrived (RFC 6675, DupThresh).
inline constexpr uint32_t kDuplicateThreshold = 3;

// Tracks the segments of a sending end, from the oldest unacknowledged to the newest sent.
class TcpScoreboard {
 public:
  void OnSend() { segments_.push_back({.order = next_order_++}); }  // a new one
  void OnAcknowledged(uint32_t count);                              // the oldest ones
  // Marks the segments from `begin` to before `end`, counted from the oldest, as received.
  void OnSelective(uint32_t begin, uint32_t end);
  // Marks segments as lost: those that kDuplicateThreshold later ones have overtaken, once, and
  // retransmissions that a later transmission has overtaken (RFC 8985, without a reordering window,
  // as if nothing was ever reordered). Returns whether any was marked.
  bool MarkLost();
  // Marks all segments as lost except those known to be received. Must be called when the timer
  // expires.
  void MarkAllLost();
  // Returns the position of the first lost segment, which must be sent again now. Precondition:
  // lost() > 0.
  uint32_t TakeLost();

  uint32_t sacked() const { return sacked_; }
  uint32_t lost() const { return lost_; }  // and not sent again
  // Returns RFC 6675's pipe.
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
    uint32_t position = 0;  // of the segment among all ever sent
  };
  void NoteDelivered(const Segment& segment);

  std::deque<Segment> segments_;
  std::deque<Repetition> repetitions_;  // in order; some may have arrived
  uint32_t next_order_ = 0;
  uint32_t delivered_order_ = 0;  // one past the latest transmission that has arrived
  uint32_t acknowledged_ = 0;     // ever
  uint32_t sacked_ = 0;
  uint32_t lost_ = 0;
  uint32_t sacked_end_ = 0;   // one past the last segment that is sacked
  uint32_t examined_ = 0;     // number of segments that MarkLost() has examined
  uint32_t repeat_from_ = 0;  // no segment before this one is lost
};

// Computes the retransmission time-out.
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

// Tracks the segments of a receiving end that have arrived, from the expected one on.
class TcpReassembly {
 public:
  struct Taken {
    bool is_new = false;
    uint32_t advanced = 0;   // segments by which the expected one has moved
    uint32_t completed = 0;  // messages that end with one of these segments
  };
  // Takes in a segment that is `distance` behind the expected one.
  Taken Take(uint32_t distance, bool is_last_of_message);
  bool HasGap() const { return !here_.empty(); }
  // Describes the contiguous block of segments around the one at `distance`, both counted from the
  // expected one.
  struct Block {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  Block BlockAt(uint32_t distance) const;

 private:
  static constexpr uint8_t kHere = 1;
  static constexpr uint8_t kLast = 2;

  std::deque<uint8_t> here_;  // flags of segments; the first is the expected one
};

// Holds the state of a sending end.
struct TcpSender {
  TcpScoreboard scoreboard;
  TcpTimeout timeout;
  uint32_t congestion_packets = 1;
  uint32_t offered_end = 0;   // one past the last segment that the receiver has room for
  uint32_t recovery_end = 0;  // of the loss that the window was last cut for
  bool in_recovery = false;
  int64_t event_ps = kNeverPs;   // of the timer's next event; others are ignored
  int64_t first_repeat_ps = -1;  // first expiry of the timer since the last progress
};

// Holds the state of a receiving end.
struct TcpReceiver {
  // Returns whether a segment that arrives now must be acknowledged at once.
  bool IsQuick(int64_t now_ps) {
    if (last_segment_ps < 0 || now_ps - last_segment_ps > kTcpRtoMinPs) quick_acks = kTcpQuickAcks;
    last_segment_ps = now_ps;
    if (quick_acks == 0) return false;
    --quick_acks;
    return true;
  }

  TcpReassembly reassembly;
  bool is_read_by_hand = false;  // by Read(); else data is read when it arrives
  uint32_t read_end = 0;         // one past the last segment that the application has read
  uint32_t offered_end = 0;      // in the last ACK
  uint32_t quick_acks = 0;       // left
  int64_t last_segment_ps = -1;  // when it arrived
  int64_t timestamp_ps = 0;      // of the newest segment in order, which ACKs echo (RFC 7323)
};

// Holds the fields of a stream's ACK besides the expected segment, packed into its 64 bits.
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
