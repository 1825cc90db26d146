// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/tcp/tcp_stream.h"

#include <algorithm>
#include <cstdlib>

namespace railyard {

void TcpScoreboard::OnAcknowledged(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const Segment& segment = segments_.front();
    sacked_ -= (segment.flags & kSacked) != 0 ? 1 : 0;
    lost_ -= (segment.flags & kLost) != 0 ? 1 : 0;
    NoteDelivered(segment);
    segments_.pop_front();
  }
  acknowledged_ += count;
  sacked_end_ -= std::min(sacked_end_, count);
  examined_ -= std::min(examined_, count);
  repeat_from_ -= std::min(repeat_from_, count);
}

void TcpScoreboard::OnSelective(uint32_t begin, uint32_t end) {
  end = std::min(end, static_cast<uint32_t>(segments_.size()));
  for (uint32_t i = begin; i < end; ++i) {
    Segment& segment = segments_[i];
    if ((segment.flags & kSacked) != 0) continue;
    if ((segment.flags & kLost) != 0) --lost_;
    segment.flags = kSacked;
    NoteDelivered(segment);
    ++sacked_;
  }
  sacked_end_ = std::max(sacked_end_, end);
}

// Numbers wrap around at 2^32; compared numbers are never far apart.
void TcpScoreboard::NoteDelivered(const Segment& segment) {
  if (static_cast<int32_t>(segment.order + 1 - delivered_order_) > 0) {
    delivered_order_ = segment.order + 1;
  }
}

bool TcpScoreboard::MarkLost() {
  const uint32_t lost_before = lost_;
  for (; !repetitions_.empty(); repetitions_.pop_front()) {
    const Repetition& repetition = repetitions_.front();
    if (static_cast<int32_t>(repetition.order + 1 - delivered_order_) >= 0) break;
    const uint32_t place = repetition.position - acknowledged_;
    if (place >= segments_.size()) continue;  // acknowledged
    Segment& segment = segments_[place];
    if (segment.flags != kRepeated || segment.order != repetition.order) continue;
    segment.flags = kLost;
    ++lost_;
    repeat_from_ = std::min(repeat_from_, place);
  }
  if (sacked_ >= kDuplicateThreshold) {
    uint32_t later = 0;
    uint32_t end = sacked_end_;
    while (later < kDuplicateThreshold) later += (segments_[--end].flags & kSacked) != 0 ? 1 : 0;
    for (; examined_ < end; ++examined_) {
      if (segments_[examined_].flags != 0) continue;
      segments_[examined_].flags = kLost;
      ++lost_;
    }
  }
  return lost_ != lost_before;
}

void TcpScoreboard::MarkAllLost() {
  for (Segment& segment : segments_) {
    if ((segment.flags & kSacked) == 0) segment.flags = kLost;
  }
  repetitions_.clear();
  lost_ = static_cast<uint32_t>(segments_.size()) - sacked_;
  examined_ = static_cast<uint32_t>(segments_.size());
  repeat_from_ = 0;
}

uint32_t TcpScoreboard::TakeLost() {
  while ((segments_[repeat_from_].flags & kLost) == 0) ++repeat_from_;
  segments_[repeat_from_] = {.order = next_order_, .flags = kRepeated};
  repetitions_.push_back({.order = next_order_++, .position = acknowledged_ + repeat_from_});
  --lost_;
  return repeat_from_;
}

// Implements RFC 6298, section 2, with Linux's floor of four variations (tcp_rtt_estimator,
// net/ipv4/tcp_input.c).
void TcpTimeout::OnRoundTrip(int64_t rtt_ps) {
  if (smoothed_ps_ < 0) {
    smoothed_ps_ = rtt_ps;
    variation_ps_ = rtt_ps / 2;
    return;
  }
  variation_ps_ += (std::abs(smoothed_ps_ - rtt_ps) - variation_ps_) / 4;
  smoothed_ps_ += (rtt_ps - smoothed_ps_) / 8;
}

int64_t TcpTimeout::TimeoutPs() const {
  int64_t timeout_ps = smoothed_ps_ + std::max(4 * variation_ps_, kTcpRtoMinPs);
  for (uint32_t i = 0; i < back_offs_ && timeout_ps < kTcpRtoMaxPs; ++i) timeout_ps *= 2;
  return std::min(timeout_ps, kTcpRtoMaxPs);
}

TcpReassembly::Taken TcpReassembly::Take(uint32_t distance, bool is_last_of_message) {
  if (here_.size() <= distance) here_.resize(distance + 1);
  if (here_[distance] != 0) return {};
  here_[distance] = is_last_of_message ? kHere | kLast : kHere;
  Taken taken = {.is_new = true};
  for (; !here_.empty() && here_.front() != 0; ++taken.advanced) {
    taken.completed += (here_.front() & kLast) != 0 ? 1 : 0;
    here_.pop_front();
  }
  return taken;
}

TcpReassembly::Block TcpReassembly::BlockAt(uint32_t distance) const {
  Block block = {distance, distance + 1};
  while (block.begin > 0 && here_[block.begin - 1] != 0) --block.begin;
  while (block.end < here_.size() && here_[block.end] != 0) ++block.end;
  return block;
}

}  // namespace railyard
