// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/tcp_stream.h"

#include <algorithm>
#include <cstdlib>

namespace railyard {

void TcpScoreboard::OnAcknowledged(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    sacked_ -= (segments_.front() & kSacked) != 0 ? 1 : 0;
    lost_ -= (segments_.front() & kLost) != 0 ? 1 : 0;
    segments_.pop_front();
  }
  sacked_end_ -= std::min(sacked_end_, count);
  examined_ -= std::min(examined_, count);
  repeat_from_ -= std::min(repeat_from_, count);
}

void TcpScoreboard::OnSelective(uint32_t begin, uint32_t end) {
  end = std::min(end, static_cast<uint32_t>(segments_.size()));
  for (uint32_t i = begin; i < end; ++i) {
    uint8_t& segment = segments_[i];
    if ((segment & kSacked) != 0) continue;
    if ((segment & kLost) != 0) --lost_;
    segment = kSacked;
    ++sacked_;
  }
  sacked_end_ = std::max(sacked_end_, end);
}

bool TcpScoreboard::MarkLost() {
  if (sacked_ < kDuplicateThreshold) return false;
  uint32_t later = 0;
  uint32_t end = sacked_end_;
  while (later < kDuplicateThreshold) later += (segments_[--end] & kSacked) != 0 ? 1 : 0;
  bool is_new = false;
  for (; examined_ < end; ++examined_) {
    if (segments_[examined_] != 0) continue;
    segments_[examined_] = kLost;
    ++lost_;
    is_new = true;
  }
  return is_new;
}

void TcpScoreboard::MarkAllLost() {
  for (uint8_t& segment : segments_) {
    if ((segment & kSacked) == 0) segment = kLost;
  }
  lost_ = static_cast<uint32_t>(segments_.size()) - sacked_;
  examined_ = static_cast<uint32_t>(segments_.size());
  repeat_from_ = 0;
}

uint32_t TcpScoreboard::TakeLost() {
  while ((segments_[repeat_from_] & kLost) == 0) ++repeat_from_;
  segments_[repeat_from_] = kRepeated;
  --lost_;
  return repeat_from_;
}

// RFC 6298, section 2, with Linux's floor of four variations (tcp_rtt_estimator,
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
