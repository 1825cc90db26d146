// SPDX-License-Identifier: GPL-2.0-only
// Implements a priority queue of plain event records by simulated time. It takes constant time per
// event within some microseconds, and allocates no memory once it has grown to its working size.
//
// Events are ordered by (time, tie, target); insertion order plays no part. Time is cut into
// buckets of 2^kBucketShift picoseconds:
//   - the next kSlotCount - 1 buckets are linked lists of chunks of five events, a cache line each,
//     in one arena, with a 4-byte head each and a two-level bitmap of the occupied ones;
//   - the open bucket, the one being drained, is a sorted array;
//   - events that are inserted into the open bucket (or before it, after only withdrawn events were
//     popped) are stored in a separate small heap, so that their cost is never quadratic;
//   - events beyond the slots wait in a far heap and leave it when their bucket opens. If the slots
//     are empty, the next bucket is the far heap's first, so a sparse simulation scans nothing.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace railyard {

class TimingWheel {
 public:
  static constexpr int kBucketShift = 8;  // 256 ps: few events share a bucket at 1,024 GPUs
  static constexpr int kSlotShift = 15;   // 8.4 us: packets and ACKs, not retransmission timers
  static constexpr uint64_t kSlotCount = uint64_t{1} << kSlotShift;
  // A tie has kTieBits bits; its topmost kTagBits choose the prefetch entry.
  static constexpr int kTieBits = 64 - kBucketShift;
  static constexpr int kTagBits = 6;

  struct Event {
    int64_t time_ps;
    uint64_t tie;
    uint32_t target;
  };

  TimingWheel();
  TimingWheel(const TimingWheel&) = delete;  // some 140 KB
  TimingWheel& operator=(const TimingWheel&) = delete;
  void Swap(TimingWheel& other);
  // Accepts events of any time again, like a new wheel. Precondition: empty.
  void Restart();

  // Preconditions: time_ps >= 0, tie < 2^kTieBits; not before the last popped event (not checked:
  // such an event simply comes next).
  [[gnu::always_inline]] void Insert(int64_t time_ps, uint64_t tie, uint32_t target) {
    const uint64_t bucket = static_cast<uint64_t>(time_ps) >> kBucketShift;
    // One comparison tests for "after the open bucket and within the slots".
    if (bucket - open_bucket_ - 1 >= kSlotCount - 1) [[unlikely]] {
      InsertOutsideSlots(time_ps, tie, target);
      return;
    }
    const uint64_t slot = bucket & (kSlotCount - 1);
    uint32_t head = heads_[slot];
    if (EventsIn(head) >= kChunkEvents) head = AddChunk(slot);
    Chunk& chunk = chunks_[ChunkOf(head)];
    chunk.keys[EventsIn(head)] = (static_cast<uint64_t>(time_ps) << kTieBits) | tie;
    chunk.targets[EventsIn(head)] = target;
    heads_[slot] = head + 1;
    ++in_slots_;
  }

  // Removes the earliest event; returns false if there is none.
  bool PopEarliest(Event& event) {
    if (!beside_.empty()) [[unlikely]] {
      if (PopBeside(event)) {
        return true;
      }
    }
    if (next_in_open_ == open_end_) {
      return PopFromNextBucket(event);
    }
    event = EventOf(open_[next_in_open_++]);
    if (EventsIn(ahead_) != 0) LookAhead();
    return true;
  }

  size_t size() const {
    return in_slots_ + (open_end_ - next_in_open_) + beside_.size() + far_.size();
  }
  bool empty() const { return size() == 0; }

  // Calls visit(event) for all events, in any order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t i = next_in_open_; i < open_end_; ++i) visit(EventOf(open_[i]));
    for (const Event& event : beside_) visit(event);
    for (const Event& event : far_) visit(event);
    for (uint64_t word = 0; word < kWordCount; ++word) {
      for (uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
        const uint64_t slot = word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
        const uint64_t bucket = open_bucket_ + ((slot - open_bucket_) & (kSlotCount - 1));
        for (uint32_t head = heads_[slot]; head != kNoHead;) {
          const Chunk& chunk = chunks_[ChunkOf(head)];
          for (uint32_t i = 0; i < EventsIn(head); ++i) {
            visit(EventIn(bucket, {chunk.keys[i], chunk.targets[i]}));
          }
          head = chunk.next == kNoChunk ? kNoHead : HeadOf(chunk.next, kChunkEvents);
        }
      }
    }
  }

  // Describes a table whose records are prefetched before the events that access them, where events
  // are dense. While a bucket is drained, the wheel prefetches the records that the next bucket's
  // events name by their targets; when that bucket opens, it prefetches the records that fields of
  // those name in turn. A table is an array whose start may move. An index beyond its end
  // prefetches other memory, which is harmless.
  struct PrefetchTable {
    const char* const* base = &kNowhere;
    uint64_t stride = 0;       // bytes
    uint64_t second_line = 0;  // offset of the record's second cache line, or 0
  };
  struct Prefetch {
    PrefetchTable records;  // of the event's target
    struct Field {
      uint64_t offset = 0;  // of a uint32_t in the record, an index into
      PrefetchTable table;
    };
    std::array<Field, 3> fields;
  };
  // Sets the tables for events whose tie has `tag` on top; until ClearPrefetch() each target names
  // a record.
  void SetPrefetch(unsigned tag, const Prefetch& prefetch) { prefetch_.at(tag) = prefetch; }
  void SetPrefetchAs(const TimingWheel& other) { prefetch_ = other.prefetch_; }
  // Disables all prefetches.
  void ClearPrefetch() { prefetch_.fill({}); }

 private:
  // `key` has the time's low kBucketShift bits above the tie, so that a bucket is sorted by one
  // integer.
  struct Node {
    uint64_t key;
    uint32_t target;
  };
  static constexpr uint32_t kChunkEvents = 5;
  struct alignas(64) Chunk {
    std::array<uint64_t, kChunkEvents> keys;
    std::array<uint32_t, kChunkEvents> targets;
    uint32_t next;  // in its slot, if it is full, or in the free list
  };
  static_assert(sizeof(Chunk) == 64);
  // A head holds a slot's first chunk and the number of events in it. kNoHead counts as a full
  // chunk.
  static constexpr int kCountBits = 3;
  static constexpr uint32_t EventsIn(uint32_t head) { return head & ((1u << kCountBits) - 1); }
  static constexpr uint32_t ChunkOf(uint32_t head) { return head >> kCountBits; }
  static constexpr uint32_t HeadOf(uint32_t chunk, uint32_t events) {
    return chunk << kCountBits | events;
  }
  static constexpr uint32_t kNoHead = UINT32_MAX;
  static constexpr uint32_t kNoChunk = kNoHead >> kCountBits;
  static constexpr uint64_t kNoBucket = UINT64_MAX;
  static constexpr uint64_t kTieMask = (uint64_t{1} << kTieBits) - 1;
  static constexpr uint64_t kWordCount = kSlotCount / 64;
  static constexpr uint64_t kSummaryCount = kWordCount / 64;
  static_assert(kSummaryCount >= 1 && std::has_single_bit(kSummaryCount));

  // A bucket with fewer events than this is too short a time for a prefetch.
  static constexpr size_t kDenseEvents = 4;

  // Above this size, another sorting method is faster.
  static constexpr size_t kRankSortMax = 12;
  static constexpr size_t kBinSortMax = 128;

  // The address that is prefetched for events without a table.
  static const char* const kNowhere;

  const Prefetch& PrefetchOf(uint64_t key) const {
    return prefetch_[(key & kTieMask) >> (kTieBits - kTagBits)];
  }
  static void Fetch(const PrefetchTable& table, uint32_t index) {
    const uintptr_t record = reinterpret_cast<uintptr_t>(*table.base) + table.stride * index;
    // NOLINTBEGIN(performance-no-int-to-ptr): the record may not exist; nothing is read
    __builtin_prefetch(reinterpret_cast<const void*>(record), 1);
    __builtin_prefetch(reinterpret_cast<const void*>(record + table.second_line), 1);
    // NOLINTEND(performance-no-int-to-ptr)
  }
  static const char* RecordOf(const PrefetchTable& table, uint32_t index) {
    return *table.base + table.stride * index;
  }
  // Prefetches for up to two events of the next bucket, because it may have more than this one.
  void LookAhead() {
    const Chunk& chunk = chunks_[ChunkOf(ahead_)];
    __builtin_prefetch(&chunks_[chunk.next == kNoChunk ? 0 : chunk.next]);
    for (int i = 0; i < 2; ++i) {
      const uint32_t last = EventsIn(--ahead_);
      const Prefetch& prefetch = PrefetchOf(chunk.keys[last]);
      __builtin_prefetch(RecordOf(prefetch.records, chunk.targets[last]), 1);
      if (last == 0) {
        SetAhead(chunk.next == kNoChunk ? kNoHead : HeadOf(chunk.next, kChunkEvents));
        return;
      }
    }
  }
  void SetAhead(uint32_t head) {
    ahead_ = head == kNoHead ? 0 : head;
    if (ahead_ != 0) __builtin_prefetch(&chunks_[ChunkOf(ahead_)]);
  }
  static bool Earlier(const Node& a, const Node& b) {
    return a.key < b.key || (a.key == b.key && a.target < b.target);
  }
  static bool Later(const Event& a, const Event& b);

  void InsertOutsideSlots(int64_t time_ps, uint64_t tie, uint32_t target);
  // Does the same as std::push_heap, with the event in registers. std::push_heap copies it by way
  // of the stack, where it reads sixteen bytes that were stored eight at a time, so that the
  // processor waits until all earlier stores are done; with a thousand GPUs this took 4 % of the
  // time.
  static void PushHeap(std::vector<Event>& heap, int64_t time_ps, uint64_t tie, uint32_t target);
  void GrowArena();
  // Puts an empty chunk in front of the slot's chunks. Returns it as a head.
  uint32_t AddChunk(uint64_t slot);
  // Removes the first event of beside_ if it is the earliest of all; returns whether it was.
  bool PopBeside(Event& event);
  // Opens the earliest non-empty bucket and removes its first event; returns false if there is
  // none. Precondition: the open bucket is drained.
  bool PopFromNextBucket(Event& event);
  // Returns the head of the slot, which becomes empty.
  uint32_t TakeSlot(uint64_t slot);
  static Event EventIn(uint64_t bucket, const Node& node) {
    return {static_cast<int64_t>((bucket << kBucketShift) | (node.key >> kTieBits)),
            node.key & kTieMask, node.target};
  }
  Event EventOf(const Node& node) const { return EventIn(open_bucket_, node); }
  uint64_t NextOccupiedBucket() const;
  void AppendToOpen(const Node& node);
  // Moves a slot's events into the still empty open bucket, and those of far_ that belong to it.
  void AppendChain(uint32_t head);
  void AppendFar();
  void PrefetchOpen();
  void SortOpen();
  bool RankOpen();
  void BinOpen();

  uint64_t open_bucket_ = 0;
  uint32_t ahead_ = 0;  // events of the next bucket that are due for prefetching
  uint32_t free_chunk_ = kNoChunk;
  std::vector<Chunk> chunks_;
  size_t in_slots_ = 0;

  std::vector<Node> open_;  // [next_in_open_, open_end_) remain; grows, never shrinks
  size_t next_in_open_ = 0;
  size_t open_end_ = 0;
  std::vector<Event> beside_;  // heap

  uint64_t far_bucket_ = kNoBucket;  // of the earliest in far_
  std::vector<Event> far_;           // heap

  std::array<Prefetch, 1 << kTagBits> prefetch_;
  std::array<uint64_t, kSummaryCount> occupied_words_{};
  std::array<uint64_t, kWordCount> occupied_{};
  std::array<uint32_t, kSlotCount> heads_;
};

}  // namespace railyard
