// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/result/link_rows.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace railyard {

void LinkBin::Add(const LinkBin& other) {
  wire_bytes += other.wire_bytes;
  payload_bytes += other.payload_bytes;
  packets += other.packets;
  dropped_packets += other.dropped_packets;
  paused_ps += other.paused_ps;
  queue_sum_bytes += other.queue_sum_bytes;
  queue_max_bytes = std::max(queue_max_bytes, other.queue_max_bytes);
}

bool LinkBin::IsNothing() const {
  return wire_bytes == 0 && packets == 0 && dropped_packets == 0 && paused_ps == 0 &&
         queue_sum_bytes == 0;
}

double UtilizationOf(const LinkBin& row, uint64_t rate_bps, int64_t time_ps) {
  if (rate_bps == 0 || time_ps <= 0) return 0;
  const double seconds = static_cast<double>(time_ps) * 1e-12;
  return static_cast<double>(row.wire_bytes) * 8 / (static_cast<double>(rate_bps) * seconds);
}

// --- Rows ----------------------------------------------------------------------------------------

LinkRows::LinkRows(std::initializer_list<LinkBin> rows) {
  for (const LinkBin& row : rows) Append(row);
}

void LinkRows::AppendNumber(uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<uint8_t>(number | 0x80));
  bytes_.push_back(static_cast<uint8_t>(number));
}

void LinkRows::Append(const LinkBin& row) {
  assert(count_ == 0 || row.link > last_link_);
  if (row.IsNothing()) return;
  const std::array<uint64_t, 7> numbers = {row.wire_bytes,
                                           row.payload_bytes,
                                           row.packets,
                                           row.dropped_packets,
                                           static_cast<uint64_t>(row.paused_ps),
                                           row.queue_sum_bytes,
                                           row.queue_max_bytes};
  AppendNumber(row.link - last_link_);
  const size_t present = bytes_.size();
  bytes_.push_back(0);
  uint32_t bits = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0) continue;
    bits |= 1u << i;
    AppendNumber(numbers[i]);
  }
  bytes_[present] = static_cast<uint8_t>(bits);
  last_link_ = row.link;
  ++count_;
}

void LinkRows::Clear() {
  bytes_.clear();
  count_ = 0;
  last_link_ = 0;
}

LinkRows::Iterator::Iterator(const LinkRows& rows) : next_(rows.bytes_.data()), left_(rows.count_) {
  if (left_ > 0) ReadRow();
}

LinkRows::Iterator& LinkRows::Iterator::operator++() {
  if (--left_ > 0) ReadRow();
  return *this;
}

uint64_t LinkRows::Iterator::ReadNumber() {
  uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t byte = *next_++;
    number |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
}

void LinkRows::Iterator::ReadRow() {
  row_.link += static_cast<uint32_t>(ReadNumber());
  uint8_t present = *next_++;
  const auto read = [&] {
    const uint64_t number = (present & 1) != 0 ? ReadNumber() : 0;
    present >>= 1;
    return number;
  };
  row_.wire_bytes = read();
  row_.payload_bytes = read();
  row_.packets = read();
  row_.dropped_packets = read();
  row_.paused_ps = static_cast<int64_t>(read());
  row_.queue_sum_bytes = read();
  row_.queue_max_bytes = read();
}

void AddUp(const LinkRows& rows, const LinkRows& more, LinkRows& sum) {
  sum.Clear();
  auto row = rows.begin();
  auto other = more.begin();
  const auto end = rows.end();
  while (row != end && other != end) {
    const uint32_t link = std::min(row->link, other->link);
    LinkBin at{.link = link};
    for (auto* const of : {&row, &other}) {
      if (*of == end || (*of)->link != link) continue;
      at.Add(**of);
      ++*of;
    }
    sum.Append(at);
  }
  for (; row != end; ++row) sum.Append(*row);
  for (; other != end; ++other) sum.Append(*other);
}

}  // namespace railyard
