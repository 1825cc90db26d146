// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/timing_wheel.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr size_t kFirstArenaChunks = 1024;

alignas(64) constexpr char kNoRecord[64] = {};

}  // namespace

TimingWheel::TimingWheel() {
  heads_.fill(kNoHead);
  ClearPrefetch();
  open_.resize(kRankSortMax);
}

const char* const TimingWheel::kNowhere = kNoRecord;

void TimingWheel::Swap(TimingWheel& other) {
  std::swap(open_bucket_, other.open_bucket_);
  std::swap(ahead_, other.ahead_);
  std::swap(free_chunk_, other.free_chunk_);
  std::swap(chunks_, other.chunks_);
  std::swap(in_slots_, other.in_slots_);
  std::swap(open_, other.open_);
  std::swap(next_in_open_, other.next_in_open_);
  std::swap(open_end_, other.open_end_);
  std::swap(beside_, other.beside_);
  std::swap(far_bucket_, other.far_bucket_);
  std::swap(far_, other.far_);
  std::swap(prefetch_, other.prefetch_);
  std::swap(occupied_words_, other.occupied_words_);
  std::swap(occupied_, other.occupied_);
  std::swap(heads_, other.heads_);
}

void TimingWheel::Restart() {
  SIM_CHECK(empty(), "events on a wheel that restarts");
  open_bucket_ = 0;
  ahead_ = 0;
  next_in_open_ = 0;
  open_end_ = 0;
}

bool TimingWheel::Later(const Event& a, const Event& b) {
  return std::tie(a.time_ps, a.tie, a.target) > std::tie(b.time_ps, b.tie, b.target);
}

void TimingWheel::PushHeap(std::vector<Event>& heap, int64_t time_ps, uint64_t tie,
                           uint32_t target) {
  size_t at = heap.size();
  heap.emplace_back();
  while (at > 0) {
    const size_t parent = (at - 1) / 2;
    const Event& above = heap[parent];
    if (std::tie(above.time_ps, above.tie, above.target) <= std::tie(time_ps, tie, target)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at].time_ps = time_ps;
  heap[at].tie = tie;
  heap[at].target = target;
}

void TimingWheel::InsertOutsideSlots(int64_t time_ps, uint64_t tie, uint32_t target) {
  const uint64_t bucket = static_cast<uint64_t>(time_ps) >> kBucketShift;
  if (bucket <= open_bucket_) {
    PushHeap(beside_, time_ps, tie, target);
  } else {
    PushHeap(far_, time_ps, tie, target);
    far_bucket_ = std::min(far_bucket_, bucket);
  }
}

void TimingWheel::GrowArena() {
  const size_t old_size = chunks_.size();
  const size_t new_size = std::max(kFirstArenaChunks, 2 * old_size);
  SIM_CHECK(new_size < kNoChunk, "more than 2^28 events pending");
  chunks_.resize(new_size);
  for (size_t chunk = old_size; chunk < new_size; ++chunk) {
    chunks_[chunk].next = static_cast<uint32_t>(chunk + 1);
  }
  chunks_[new_size - 1].next = free_chunk_;
  free_chunk_ = static_cast<uint32_t>(old_size);
}

uint32_t TimingWheel::AddChunk(uint64_t slot) {
  if (free_chunk_ == kNoChunk) [[unlikely]]
    GrowArena();
  const uint32_t chunk = free_chunk_;
  free_chunk_ = chunks_[chunk].next;
  if (free_chunk_ != kNoChunk) __builtin_prefetch(&chunks_[free_chunk_], 1);
  chunks_[chunk].next = ChunkOf(heads_[slot]);
  occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
  occupied_words_[slot / 4096] |= uint64_t{1} << (slot / 64 % 64);
  return HeadOf(chunk, 0);
}

bool TimingWheel::PopBeside(Event& event) {
  const Event& first = beside_.front();
  if (next_in_open_ != open_end_) {
    if (Later(first, EventOf(open_[next_in_open_]))) {
      return false;
    }
  }
  // One by one, as PushHeap() has stored them perhaps just now.
  const volatile Event& stored = first;
  event.time_ps = stored.time_ps;
  event.tie = stored.tie;
  event.target = stored.target;
  std::pop_heap(beside_.begin(), beside_.end(), Later);
  beside_.pop_back();
  return true;
}

uint64_t TimingWheel::NextOccupiedBucket() const {
  // Slots are searched from the one after the open bucket's round to the open bucket's own, which
  // is empty: first the rest of its word, then whole words by the summary.
  const uint64_t first_bucket = open_bucket_ + 1;
  const uint64_t first_slot = first_bucket & (kSlotCount - 1);
  const uint64_t rest = occupied_[first_slot / 64] >> (first_slot % 64);
  if (rest != 0) {
    return first_bucket + static_cast<uint64_t>(std::countr_zero(rest));
  }
  const uint64_t first_word = (first_slot / 64 + 1) & (kWordCount - 1);
  uint64_t summary_index = first_word / 64;
  uint64_t words = occupied_words_[summary_index] & (~uint64_t{0} << (first_word % 64));
  // The first summary word is looked at twice: its upper part first, its lower part last.
  for (uint64_t i = 0; words == 0; ++i) {
    if (i == kSummaryCount) {
      return kNoBucket;
    }
    summary_index = (summary_index + 1) & (kSummaryCount - 1);
    words = occupied_words_[summary_index];
  }
  const uint64_t word = summary_index * 64 + static_cast<uint64_t>(std::countr_zero(words));
  const uint64_t slot = word * 64 + static_cast<uint64_t>(std::countr_zero(occupied_[word]));
  return first_bucket + ((slot - first_slot) & (kSlotCount - 1));
}

bool TimingWheel::PopFromNextBucket(Event& event) {
  const uint64_t slot_bucket = NextOccupiedBucket();
  const uint64_t bucket = std::min(slot_bucket, far_bucket_);
  if (bucket == kNoBucket) [[unlikely]] {
    return false;
  }
  open_bucket_ = bucket;
  ahead_ = 0;
  next_in_open_ = 0;
  open_end_ = 0;
  if (bucket == slot_bucket) [[likely]] {
    const uint32_t head = TakeSlot(bucket & (kSlotCount - 1));
    Chunk& chunk = chunks_[ChunkOf(head)];
    if (EventsIn(head) == 1 && chunk.next == kNoChunk && bucket != far_bucket_) {
      event = EventOf({chunk.keys[0], chunk.targets[0]});
      chunk.next = free_chunk_;
      free_chunk_ = ChunkOf(head);
      --in_slots_;
      return true;
    }
    AppendChain(head);
  }
  if (bucket == far_bucket_) [[unlikely]] {
    AppendFar();
  }
  if (open_end_ >= kDenseEvents) PrefetchOpen();
  SortOpen();
  event = EventOf(open_[next_in_open_++]);
  return true;
}

uint32_t TimingWheel::TakeSlot(uint64_t slot) {
  const uint64_t word = slot / 64;
  const uint64_t left = occupied_[word] & ~(uint64_t{1} << (slot % 64));
  occupied_[word] = left;
  // Without a branch, which would be mispredicted half the time when one slot in 64 is occupied.
  occupied_words_[word / 64] &= ~(uint64_t{left == 0} << (word % 64));
  const uint32_t head = heads_[slot];
  heads_[slot] = kNoHead;
  return head;
}

void TimingWheel::AppendToOpen(const Node& node) {
  if (open_end_ == open_.size()) [[unlikely]] {
    open_.resize(2 * open_.size());
  }
  open_[open_end_++] = node;
}

void TimingWheel::AppendChain(uint32_t head) {
  const uint32_t first = ChunkOf(head);
  uint32_t events = EventsIn(head);
  uint32_t last = first;
  size_t end = 0;
  for (uint32_t chunk = first; chunk != kNoChunk; chunk = chunks_[chunk].next) {
    if (end + kChunkEvents > open_.size()) [[unlikely]] {
      open_.resize(2 * open_.size());
    }
    const Chunk& from = chunks_[chunk];
    for (uint32_t i = 0; i < events; ++i) open_[end + i] = {from.keys[i], from.targets[i]};
    end += events;
    events = kChunkEvents;
    last = chunk;
  }
  open_end_ = end;
  in_slots_ -= end;
  chunks_[last].next = free_chunk_;
  free_chunk_ = first;
}

void TimingWheel::AppendFar() {
  while (far_bucket_ == open_bucket_) {
    const Event& event = far_.front();
    AppendToOpen({(static_cast<uint64_t>(event.time_ps) << kTieBits) | event.tie, event.target});
    std::pop_heap(far_.begin(), far_.end(), Later);
    far_.pop_back();
    far_bucket_ =
        far_.empty() ? kNoBucket : static_cast<uint64_t>(far_.front().time_ps) >> kBucketShift;
  }
}

void TimingWheel::PrefetchOpen() {
  for (size_t i = 0; i < open_end_; ++i) {
    const Prefetch& prefetch = PrefetchOf(open_[i].key);
    const char* const record = RecordOf(prefetch.records, open_[i].target);
    for (const Prefetch::Field& field : prefetch.fields) {
      uint32_t index = 0;
      std::memcpy(&index, record + field.offset, sizeof(index));
      Fetch(field.table, index);
    }
  }
  const uint64_t next = NextOccupiedBucket();
  if (next != kNoBucket) SetAhead(heads_[next & (kSlotCount - 1)]);
}

void TimingWheel::SortOpen() {
  if (open_end_ <= kRankSortMax && RankOpen()) return;
  if (open_end_ <= kBinSortMax) {
    BinOpen();
  } else {
    std::sort(open_.data(), open_.data() + open_end_, Earlier);
  }
}

// Each event's place is the number of smaller keys: no branch depends on the keys, which no branch
// predictor could know. False, and nothing is moved, when two keys are equal: the targets decide.
bool TimingWheel::RankOpen() {
  Node* const begin = open_.data();
  std::array<uint64_t, kRankSortMax> keys;
  std::array<Node, kRankSortMax> unsorted;
  const auto count = static_cast<uint32_t>(open_end_);
  for (uint32_t i = 0; i < count; ++i) {
    unsorted[i] = begin[i];
    keys[i] = begin[i].key;
  }
  uint32_t places = 0;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t place = 0;
    for (uint32_t j = 0; j < count; ++j) place += keys[j] < keys[i] ? 1 : 0;
    begin[place] = unsorted[i];
    places += place;
  }
  if (places == count * (count - 1) / 2) [[likely]]
    return true;
  std::copy_n(unsorted.begin(), count, begin);
  return false;
}

// By the leading bits of the time, then by insertion, which finds few out of order.
void TimingWheel::BinOpen() {
  constexpr int kBinBits = 5;
  Node* const begin = open_.data();
  std::array<Node, kBinSortMax> unsorted;
  std::array<uint8_t, 1 << kBinBits> ends{};  // of the bins, once they are filled
  static_assert(kBinSortMax <= UINT8_MAX);
  const auto bin_of = [](const Node& node) { return node.key >> (64 - kBinBits); };
  for (size_t i = 0; i < open_end_; ++i) {
    unsorted[i] = begin[i];
    ++ends[bin_of(begin[i])];
  }
  uint8_t before = 0;
  for (uint8_t& end : ends) before = static_cast<uint8_t>(before + std::exchange(end, before));
  for (size_t i = 0; i < open_end_; ++i) begin[ends[bin_of(unsorted[i])]++] = unsorted[i];
  for (size_t i = 1; i < open_end_; ++i) {
    const Node node = begin[i];
    size_t place = i;
    for (; place > 0 && Earlier(node, begin[place - 1]); --place) begin[place] = begin[place - 1];
    begin[place] = node;
  }
}

}  // namespace railyard
