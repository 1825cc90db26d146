// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/contributions.h"

#include <algorithm>
#include <iterator>

namespace railyard {

void AppendPart(Parts& parts, uint64_t bytes, const Contributors& contributors) {
  if (bytes == 0) return;
  if (!parts.empty() && parts.back().contributors == contributors) {
    parts.back().bytes += bytes;
  } else {
    parts.push_back({bytes, contributors});
  }
}

PartsSum AddParts(const Parts& a, const Parts& b) {
  PartsSum sum;
  uint64_t a_left = 0;
  uint64_t b_left = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a_left == 0) a_left = a[i].bytes;
    if (b_left == 0) b_left = b[j].bytes;
    Contributors both = a[i].contributors;
    sum.twice = both.Merge(b[j].contributors);
    if (sum.twice >= 0) return sum;
    const uint64_t bytes = std::min(a_left, b_left);
    AppendPart(sum.parts, bytes, both);
    a_left -= bytes;
    b_left -= bytes;
    if (a_left == 0) ++i;
    if (b_left == 0) ++j;
  }
  return sum;
}

uint64_t KeptData::Load(uint64_t offset, uint64_t bytes, Parts& parts) {
  const uint64_t end = offset + bytes;
  CutAt(offset);
  CutAt(end);
  uint64_t at = offset;
  for (auto range = ranges_.lower_bound(offset); range != ranges_.end() && at < end; ++range) {
    if (range->first != at) break;
    AppendPart(parts, range->second.end - at, range->second.contributors);
    at = range->second.end;
  }
  return at;
}

void KeptData::Keep(uint64_t offset, uint64_t bytes, const Contributors& contributors) {
  CutAt(offset);
  CutAt(offset + bytes);
  ranges_.erase(ranges_.lower_bound(offset), ranges_.lower_bound(offset + bytes));
  ranges_[offset] = {offset + bytes, contributors};
}

void KeptData::CutAt(uint64_t at) {
  auto next = ranges_.upper_bound(at);
  if (next == ranges_.begin()) return;
  const auto range = std::prev(next);
  if (range->first == at || range->second.end <= at) return;
  ranges_.emplace_hint(next, at, range->second);
  range->second.end = at;
}

}  // namespace railyard
