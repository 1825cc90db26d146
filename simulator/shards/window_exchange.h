// SPDX-License-Identifier: GPL-2.0-only
// Defines what the processes that simulate shards share: a barrier at the end of each window of
// simulated time, a ring of crossings from each shard to each other one, and what each tells all
// others.
//
// Every cell is written by one process. A ring that is full makes its writer wait until the reader,
// which empties its rings while it waits for anything, has made room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/fabric_event.h"
#include "simulator/fabric/border.h"

namespace railyard {

// Holds what a shard reports to all shards at the end of a round.
struct ShardReport {
  int64_t next_ps = INT64_MAX;  // nothing of it happens before; INT64_MAX: nothing will
  uint64_t events = 0;          // that it has run since the last round
  // Is true if all calls of the shard have ended, the last one at `done_at`.
  bool is_done = false;
  EventPlace done_at;
  bool gives_up = false;  // something happened that needs the whole network in one process
  bool is_asked_to_end = false;
};

// Holds the progress of a shard, for those that display it.
struct ShardProgress {
  std::atomic<int64_t> now_ps{0};
  std::atomic<uint64_t> hops{0};
  std::atomic<double> share_done{0};  // of the run's work
};

class WindowExchange {
 public:
  static_assert(std::atomic<double>::is_always_lock_free, "processes share it");

  // Maps the memory, before the processes are forked. `ring_capacity` is a number of crossings.
  // Throws EnvironmentError if there is no memory to share.
  explicit WindowExchange(uint32_t shards, uint32_t ring_capacity = 1u << 14);
  WindowExchange(const WindowExchange&) = delete;
  WindowExchange& operator=(const WindowExchange&) = delete;
  ~WindowExchange();

  uint32_t shards() const { return shards_; }

  // --- In a shard's process (or thread)
  class Member {
   public:
    Member(WindowExchange& exchange, uint32_t shard) : exchange_(exchange), shard_(shard) {}
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    uint32_t shard() const { return shard_; }

    void Send(uint32_t to, const Crossing& crossing);
    // Ends the round: tells all shards the report and waits for those of all. Returns them by
    // shard; they are valid until the next call. Everything that others sent before they ended the
    // round, and perhaps what they have sent since, is in received().
    const std::vector<ShardReport>& Meet(const ShardReport& report);
    // Returns the received crossings. They belong to this shard, which must remove them.
    std::vector<Crossing>& received() { return received_; }
    bool IsAskedToEnd() const { return exchange_.is_asked_to_end(); }
    ShardProgress& progress() { return exchange_.ProgressOf(shard_); }

   private:
    void Receive();

    WindowExchange& exchange_;
    uint32_t shard_;
    uint64_t round_ = 0;
    std::vector<Crossing> received_;
    std::vector<ShardReport> reports_;
  };

  // --- In any process
  // Makes the shards see ShardReport::is_asked_to_end.
  void AskToEnd();
  bool is_asked_to_end() const;
  ShardProgress& ProgressOf(uint32_t shard) const;

 private:
  struct Cell;
  struct Ring;

  Cell& CellOf(uint32_t shard) const;
  Ring& RingFrom(uint32_t from, uint32_t to) const;
  Crossing* SlotsOf(uint32_t from, uint32_t to) const;

  uint32_t shards_;
  uint32_t capacity_;
  size_t bytes_;
  char* memory_;
};

}  // namespace railyard
