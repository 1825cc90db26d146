// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_loops.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <xxhash.h>

namespace railyard {
namespace {

// Programs are searched in parts of so many operations, which bounds the memory of the search.
constexpr size_t kPartOperations = size_t{1} << 20;
constexpr uint32_t kNowhere = UINT32_MAX;

uint64_t HashOf(const TraceOperation& shape) {
  const std::array<uint64_t, 9> words = {
      static_cast<uint64_t>(shape.kind) | static_cast<uint64_t>(shape.datatype) << 8 |
          static_cast<uint64_t>(shape.algorithm) << 16 |
          static_cast<uint64_t>(shape.protocol) << 24 |
          uint64_t{shape.begins_iteration ? 1U : 0U} << 32 |
          uint64_t{shape.in_place ? 1U : 0U} << 33,
      shape.count,
      uint64_t{shape.communicator} << 32 | shape.source_file,
      uint64_t{shape.root} << 32 | shape.peer,
      uint64_t{shape.stream} << 32 | shape.loss_tolerance_ppm,
      uint64_t{shape.group} << 32 | shape.all_to_all,
      shape.after,
      uint64_t{shape.expert.relayed_for} << 32 | shape.expert.token_bytes,
      uint64_t{shape.expert.server_ranks} << 24 | static_cast<uint64_t>(shape.expert.kernel) << 16 |
          uint64_t{shape.expert.combines ? 1U : 0U} << 8 | shape.expert.channels};
  return XXH3_64bits(words.data(), sizeof(words));
}

// Returns whether the numbers that may grow do so by the same amount from `b` to `c` as from `a` to
// `b`.
bool GrowsAlike(const TraceOperation& a, const TraceOperation& b, const TraceOperation& c) {
  const auto is_even = [](int64_t x, int64_t y, int64_t z) { return z - y == y - x; };
  return is_even(a.group, b.group, c.group) && is_even(a.after, b.after, c.after) &&
         is_even(a.all_to_all, b.all_to_all, c.all_to_all);
}

// Finds the loops of a part of a program.
class LoopFinder {
 public:
  LoopFinder(const TraceOperation* operations, size_t size) : operations_(operations), size_(size) {
    prefix_.reserve(size + 1);
    prefix_.push_back(0);
    for (size_t i = 0; i < size; ++i) {
      prefix_.push_back(prefix_.back() * kBase + HashOf(LoopShape(operations[i])));
    }
    power_.reserve(size + 1);
    power_.push_back(1);
    for (size_t i = 0; i < size; ++i) power_.push_back(power_.back() * kBase);
    for (size_t scale = 0; scale < kWindows.size(); ++scale) FindNext(scale);
  }

  std::vector<ProgramLoop> Find() const {
    std::vector<ProgramLoop> loops;
    for (size_t at = 0; at < size_;) {
      const ProgramLoop loop = LongestAt(at);
      if (loop.iterations == 0) {
        ++at;
        continue;
      }
      loops.push_back(loop);
      at += size_t{loop.length} * loop.iterations;
    }
    return loops;
  }

 private:
  // An operation of an iteration may occur in it often: the next one like it is not a period away,
  // but the next window like that which begins with it is, if it is long enough.
  static constexpr std::array<size_t, 6> kWindows = {1, 8, 64, 512, 4'096, 32'768};
  static constexpr uint64_t kBase = 0x9e3779b97f4a7c15;

  uint64_t HashOfRange(size_t begin, size_t length) const {
    return prefix_[begin + length] - prefix_[begin] * power_[length];
  }

  // For each operation, where the window that begins with it occurs next.
  void FindNext(size_t scale) {
    const size_t window = kWindows[scale];
    std::vector<uint32_t>& next = next_[scale];
    next.assign(size_, kNowhere);
    std::unordered_map<uint64_t, uint32_t> last;
    std::vector<bool> repeats(size_);
    for (size_t i = size_ >= window ? size_ - window + 1 : 0; i-- > 0;) {
      if (scale > 0 && !repeats_[i]) continue;  // its shorter window is the only one of its kind
      const auto [entry, is_new] =
          last.try_emplace(HashOfRange(i, window), static_cast<uint32_t>(i));
      if (is_new) continue;
      next[i] = entry->second;
      repeats[i] = repeats[entry->second] = true;
      entry->second = static_cast<uint32_t>(i);
    }
    repeats_ = std::move(repeats);
  }

  ProgramLoop LongestAt(size_t begin) const {
    ProgramLoop longest;
    size_t saving = kLoopSavingMin - 1;
    uint32_t length_before = 0;
    for (const std::vector<uint32_t>& next : next_) {
      if (next[begin] == kNowhere) break;
      const auto length = static_cast<uint32_t>(next[begin] - begin);
      if (length == length_before) continue;
      length_before = length;
      const uint32_t iterations = Iterations(begin, length);
      if (iterations < 2 || size_t{length} * (iterations - 1) <= saving) continue;
      saving = size_t{length} * (iterations - 1);
      longest = {.begin = begin, .length = length, .iterations = iterations};
    }
    return longest;
  }

  // Returns how often in a row the operations are repeated; 1 if they are not.
  uint32_t Iterations(size_t begin, size_t length) const {
    const uint64_t hash = HashOfRange(begin, length);
    uint32_t count = 1;
    for (size_t at = begin + length; at + length <= size_; at += length, ++count) {
      if (length * (count + 1) > kLoopOperationsMax || HashOfRange(at, length) != hash ||
          !IsIteration(at, length, count)) {
        break;
      }
    }
    return count;
  }

  // Returns whether the operations at `at` go on with a loop of `before` iterations.
  bool IsIteration(size_t at, size_t length, uint32_t before) const {
    for (size_t i = at; i < at + length; ++i) {
      const TraceOperation& here = operations_[i];
      const TraceOperation& last = operations_[i - length];
      if (LoopShape(here) != LoopShape(last)) return false;
      if (before > 1 && !GrowsAlike(operations_[i - 2 * length], last, here)) return false;
    }
    return true;
  }

  const TraceOperation* operations_;
  size_t size_;
  std::vector<uint64_t> prefix_;  // hashes of the operations before each, as a polynomial
  std::vector<uint64_t> power_;   // of kBase
  std::array<std::vector<uint32_t>, kWindows.size()> next_;
  std::vector<bool> repeats_;  // the window of the scale before occurs elsewhere
};

}  // namespace

TraceOperation LoopShape(TraceOperation operation) {
  operation.group = operation.group != 0 ? 1 : 0;
  operation.all_to_all = operation.all_to_all != 0 ? 1 : 0;
  operation.after = operation.after != 0 ? 1 : 0;
  operation.source_line = 0;
  operation.compute_before_ps = 0;
  operation.measured_ps = 0;
  return operation;
}

std::vector<ProgramLoop> FindLoops(const std::vector<TraceOperation>& program) {
  std::vector<ProgramLoop> loops;
  for (size_t begin = 0; begin < program.size(); begin += kPartOperations) {
    const size_t size = std::min(kPartOperations, program.size() - begin);
    if (size <= kLoopSavingMin) continue;
    for (ProgramLoop loop : LoopFinder(program.data() + begin, size).Find()) {
      loop.begin += begin;
      loops.push_back(loop);
    }
  }
  return loops;
}

}  // namespace railyard
