// SPDX-License-Identifier: GPL-2.0-only
// Represents data without values, by the ranks whose contributions each byte contains.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "simulator/units/rank_index.h"

namespace railyard {

// Represents the set of ranks whose contributions a piece of data contains.
class Contributors {
 public:
  Contributors() = default;
  // Makes an empty set.
  explicit Contributors(uint32_t rank_count) : words_((rank_count + 63) / 64) {}
  Contributors(uint32_t rank_count, RankIndex rank) : Contributors(rank_count) { Add(rank); }

  // Returns false if the rank is in the set already.
  bool Add(RankIndex rank) {
    uint64_t& word = words_[rank / 64];
    const uint64_t bit = uint64_t{1} << rank % 64;
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  bool Has(RankIndex rank) const { return (words_[rank / 64] >> rank % 64 & 1) != 0; }
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

// Describes a run of bytes of a chunk, in the order of its pieces, that contain the same
// contributions.
struct Part {
  uint64_t bytes = 0;
  Contributors contributors;
};
// Lists the parts of a whole chunk; an empty chunk has none.
using Parts = boost::container::small_vector<Part, 1>;

// Adds a run of bytes at the end.
void AppendPart(Parts& parts, uint64_t bytes, const Contributors& contributors);

// Holds the union of both operands' contributions to each byte or, which is an error, a rank that
// both contain. Only one of the two is set. Precondition: both operands have the same number of
// bytes.
// NOLINTNEXTLINE(bugprone-exception-escape): to move Parts throws nothing
struct PartsSum {
  Parts parts;
  int64_t twice = -1;
};
PartsSum AddParts(const Parts& a, const Parts& b);

// Holds the data a lane keeps for its later steps, by place in the buffer.
class KeptData {
 public:
  // Appends the data kept for the `bytes` at `offset`. Returns where it ends, which is before the
  // end of the range if nothing is kept at some place.
  uint64_t Load(uint64_t offset, uint64_t bytes, Parts& parts);
  // Replaces the data kept at that place.
  void Keep(uint64_t offset, uint64_t bytes, const Contributors& contributors);

 private:
  struct Range {
    uint64_t end = 0;
    Contributors contributors;
  };

  // Splits a range that contains `at` in two.
  void CutAt(uint64_t at);

  std::map<uint64_t, Range> ranges_;  // by their begin
};

}  // namespace railyard
