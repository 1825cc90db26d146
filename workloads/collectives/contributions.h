// SPDX-License-Identifier: GPL-2.0-only
// Data without values: which ranks' contributions each byte holds.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <boost/container/small_vector.hpp>

namespace railyard {

// The set of ranks whose contributions a piece of data contains.
class Contributors {
 public:
  Contributors() = default;
  // The empty set.
  explicit Contributors(uint32_t rank_count) : words_((rank_count + 63) / 64) {}
  Contributors(uint32_t rank_count, uint32_t rank) : Contributors(rank_count) { Add(rank); }

  // False if it was there already.
  bool Add(uint32_t rank) {
    uint64_t& word = words_[rank / 64];
    const uint64_t bit = uint64_t{1} << rank % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  bool Has(uint32_t rank) const { return (words_[rank / 64] >> rank % 64 & 1) != 0; }
  // Adds the ranks of `other` and returns -1; if a rank is in both sets, returns that rank and adds
  // nothing.
  int64_t Merge(const Contributors& other) {
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t both = words_[i] & other.words_[i];
      if (both != 0) return static_cast<int64_t>(i) * 64 + std::countr_zero(both);
    }
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return -1;
  }
  bool operator==(const Contributors&) const = default;

 private:
  std::vector<uint64_t> words_;
};

// A run of bytes of a chunk, in the order of its pieces, that hold the same contributions.
struct Part {
  uint64_t bytes = 0;
  Contributors contributors;
};
// All of a chunk; nothing of an empty one.
using Parts = boost::container::small_vector<Part, 1>;

// Adds a run of bytes at the end.
void AppendPart(Parts& parts, uint64_t bytes, const Contributors& contributors);

// Both operands' contributions to each byte; or a rank that both have, which must not be. Only one
// of the two is set. Precondition: as many bytes.
// NOLINTNEXTLINE(bugprone-exception-escape): to move Parts throws nothing
struct PartsSum {
  Parts parts;
  int64_t twice = -1;
};
PartsSum AddParts(const Parts& a, const Parts& b);

// Holds the data a lane keeps for its later steps, by place in the buffer.
class KeptData {
 public:
  // Appends what is kept of the bytes at `offset`; returns where that ends, before all of them if
  // there is a place where nothing is kept.
  uint64_t Load(uint64_t offset, uint64_t bytes, Parts& parts);
  // In place of what was kept there.
  void Keep(uint64_t offset, uint64_t bytes, const Contributors& contributors);

 private:
  struct Range {
    uint64_t end = 0;
    Contributors contributors;
  };

  // Cuts the range in two that goes across.
  void CutAt(uint64_t at);

  std::map<uint64_t, Range> ranges_;  // by where they begin
};

}  // namespace railyard
