// SPDX-License-Identifier: GPL-2.0-only
// Stores a row of figures per link and bin. A series of a large fabric has tens of thousands of
// rows, most with few and small numbers, so a row takes only as many bytes as these need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace railyard {

// Holds the figures of one direction of a link within a bin. The queue is that of the port that
// sends into the link.
struct LinkBin {
  uint32_t link = 0;        // into RunResult::links
  uint64_t wire_bytes = 0;  // that arrived, of any kind of packet
  uint64_t payload_bytes = 0;
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;
  int64_t paused_ps = 0;
  uint64_t queue_sum_bytes = 0;  // over the bin's samples
  uint64_t queue_max_bytes = 0;  // of the samples

  void Add(const LinkBin& other);
  // Returns whether all figures are 0.
  bool IsNothing() const;
};

// Returns the share of the link's capacity that was used.
double UtilizationOf(const LinkBin& row, uint64_t rate_bps, int64_t time_ps);

// Holds rows of different links, ascending by link. They can only be read in this order.
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
    size_t left_ = 0;  // rows, the current one included
    LinkBin row_{};
  };

  LinkRows() = default;
  LinkRows(std::initializer_list<LinkBin> rows);

  // Adds a row; rows of zeros are omitted. Precondition: its link is greater than those of all
  // earlier rows.
  void Append(const LinkBin& row);
  // Removes all rows, but keeps the memory.
  void Clear();

  size_t size() const { return count_; }
  size_t size_bytes() const { return bytes_.size(); }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  void AppendNumber(uint64_t number);

  // A row consists of the distance of its link from the previous row's, a byte that says which of
  // its numbers are not 0, and these numbers. Each byte of a number has seven of its bits, the
  // lowest first.
  std::vector<uint8_t> bytes_;
  uint32_t count_ = 0;
  uint32_t last_link_ = 0;
};

// Writes the rows of both to `sum`, with rows of the same link added up. Precondition: `sum` is
// neither of them.
void AddUp(const LinkRows& rows, const LinkRows& more, LinkRows& sum);

}  // namespace railyard
