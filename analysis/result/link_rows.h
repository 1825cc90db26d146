// SPDX-License-Identifier: GPL-2.0-only
// This file has rows of what links did in a time. A series of a large fabric has tens of thousands
// of them, most with few and small numbers, so they are kept in as few bytes as these need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace railyard {

// One direction of a link within a bin. The queue is that of the port that sends into the link.
struct LinkBin {
  uint32_t link = 0;        // into RunResult::links
  uint64_t wire_bytes = 0;  // that arrived, of any kind
  uint64_t payload_bytes = 0;
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;
  int64_t paused_ps = 0;
  uint64_t queue_sum_bytes = 0;  // over the bin's samples
  uint64_t queue_max_bytes = 0;  // of the samples

  void Add(const LinkBin& other);
  // Whether all of it is 0, of whatever link.
  bool IsNothing() const;
};

// The share of what a link of that rate could have carried in that time.
double UtilizationOf(const LinkBin& row, uint64_t rate_bps, int64_t time_ps);

// Rows of different links, ascending. They are read from the first on.
class LinkRows {
 public:
  // Reads row after row; compares with std::default_sentinel.
  class Iterator {
   public:
    Iterator() = default;  // at the end

    const LinkBin& operator*() const { return row_; }
    const LinkBin* operator->() const { return &row_; }
    Iterator& operator++();
    bool operator==(std::default_sentinel_t) const { return left_ == 0; }

   private:
    friend LinkRows;
    explicit Iterator(const LinkRows& rows);
    uint64_t ReadNumber();
    void ReadRow();

    const uint8_t* next_ = nullptr;
    size_t left_ = 0;  // rows, with the one that is read
    LinkBin row_{};
  };

  LinkRows() = default;
  LinkRows(std::initializer_list<LinkBin> rows);

  // Adds the row of a link that is greater than those there are. One that is nothing is left out.
  void Append(const LinkBin& row);
  // Removes all rows, but not their memory.
  void Clear();

  size_t size() const { return count_; }
  size_t size_bytes() const { return bytes_.size(); }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  void AppendNumber(uint64_t number);

  // A row is the distance of its link from the one before, a byte that tells which of its numbers
  // are not 0, and these. A byte has seven bits of a number, the lowest first.
  std::vector<uint8_t> bytes_;
  uint32_t count_ = 0;
  uint32_t last_link_ = 0;
};

// Writes the rows of both to `sum`, which is neither; those of one link are added up.
void AddUp(const LinkRows& rows, const LinkRows& more, LinkRows& sum);

}  // namespace railyard
