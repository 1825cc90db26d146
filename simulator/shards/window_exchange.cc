// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/shards/window_exchange.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <sched.h>
#include <sys/mman.h>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

// A wait that takes longer yields the processor, which another shard may need.
constexpr int kSpins = 4096;

// Waits a little longer each time.
class Waiting {
 public:
  void Wait() {
    if (++spins_ < kSpins) {
      __builtin_ia32_pause();
    } else {
      sched_yield();
    }
  }

 private:
  int spins_ = 0;
};

}  // namespace

// A round's report stays until the shard ends the second round after it; by then all shards have
// ended the one in between, and so have read it.
struct alignas(64) WindowExchange::Cell {
  std::atomic<uint64_t> rounds{0};  // ended
  std::array<ShardReport, 2> reports;
  alignas(64) ShardProgress progress;
  alignas(64) std::atomic<bool> is_asked_to_end{false};  // of the first shard
};

struct WindowExchange::Ring {
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
};

WindowExchange::WindowExchange(uint32_t shards, uint32_t ring_capacity)
    : shards_(shards), capacity_(ring_capacity) {
  SIM_CHECK(std::has_single_bit(ring_capacity), "a ring whose capacity is no power of two");
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share it");
  const size_t rings = size_t{shards} * shards;
  bytes_ = shards * sizeof(Cell) + rings * (sizeof(Ring) + capacity_ * sizeof(Crossing));
  // Pages of rings that are never filled take no memory.
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw EnvironmentError(
        fmt::format("no memory to share among {} processes: {}", shards, std::strerror(errno)));
  }
  memory_ = static_cast<char*>(memory);
  for (uint32_t shard = 0; shard < shards; ++shard) new (&CellOf(shard)) Cell;
  for (uint32_t from = 0; from < shards; ++from) {
    for (uint32_t to = 0; to < shards; ++to) new (&RingFrom(from, to)) Ring;
  }
}

WindowExchange::~WindowExchange() { munmap(memory_, bytes_); }

WindowExchange::Cell& WindowExchange::CellOf(uint32_t shard) const {
  return reinterpret_cast<Cell*>(memory_)[shard];
}

WindowExchange::Ring& WindowExchange::RingFrom(uint32_t from, uint32_t to) const {
  Ring* const rings = reinterpret_cast<Ring*>(memory_ + shards_ * sizeof(Cell));
  return rings[size_t{from} * shards_ + to];
}

Crossing* WindowExchange::SlotsOf(uint32_t from, uint32_t to) const {
  const size_t rings = size_t{shards_} * shards_;
  auto* const slots =
      reinterpret_cast<Crossing*>(memory_ + shards_ * sizeof(Cell) + rings * sizeof(Ring));
  return slots + (size_t{from} * shards_ + to) * capacity_;
}

ShardProgress& WindowExchange::ProgressOf(uint32_t shard) const { return CellOf(shard).progress; }

void WindowExchange::AskToEnd() { CellOf(0).is_asked_to_end = true; }

bool WindowExchange::is_asked_to_end() const { return CellOf(0).is_asked_to_end; }

void WindowExchange::Member::Send(uint32_t to, const Crossing& crossing) {
  Ring& ring = exchange_.RingFrom(shard_, to);
  const uint64_t written = ring.written.load(std::memory_order_relaxed);
  Waiting waiting;
  while (written - ring.read.load(std::memory_order_acquire) == exchange_.capacity_) {
    Receive();  // the reader may wait for room in its turn
    waiting.Wait();
  }
  exchange_.SlotsOf(shard_, to)[written & (exchange_.capacity_ - 1)] = crossing;
  ring.written.store(written + 1, std::memory_order_release);
}

void WindowExchange::Member::Receive() {
  for (uint32_t from = 0; from < exchange_.shards_; ++from) {
    if (from == shard_) continue;
    Ring& ring = exchange_.RingFrom(from, shard_);
    const Crossing* const slots = exchange_.SlotsOf(from, shard_);
    uint64_t read = ring.read.load(std::memory_order_relaxed);
    const uint64_t written = ring.written.load(std::memory_order_acquire);
    if (read == written) continue;
    for (; read != written; ++read) received_.push_back(slots[read & (exchange_.capacity_ - 1)]);
    ring.read.store(read, std::memory_order_release);
  }
}

const std::vector<ShardReport>& WindowExchange::Member::Meet(const ShardReport& report) {
  Cell& own = exchange_.CellOf(shard_);
  ++round_;
  own.reports[round_ % 2] = report;
  own.rounds.store(round_, std::memory_order_release);
  reports_.clear();
  Waiting waiting;
  for (uint32_t shard = 0; shard < exchange_.shards_; ++shard) {
    const Cell& cell = exchange_.CellOf(shard);
    while (cell.rounds.load(std::memory_order_acquire) < round_) {
      Receive();
      waiting.Wait();
    }
    reports_.push_back(cell.reports[round_ % 2]);
  }
  Receive();
  return reports_;
}

}  // namespace railyard
