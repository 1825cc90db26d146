// SPDX-License-Identifier: GPL-2.0-only
// Defines the shared memory of the processes that simulate shards: a barrier at the end of each
// window of simulated time, a ring of crossings from each shard to each other shard, and a report
// of each shard to all others.
//
// Every cell is written by one process only. The writer of a full ring waits until its reader has
// made room; readers empty their rings while they wait themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/engine/fabric_event.h"
#include "simulator/fabric/crossing.h"

namespace railyard {

// Holds what a shard reports to all shards at the end of a round.
struct ShardReport {
  int64_t next_ps = INT64_MAX;  // of its next event; INT64_MAX if there is none
  uint64_t events = 0;          // run since the last round
  // Is true if all calls of the shard have ended, the last one at `done_at`.
  bool is_done = false;
  EventPlace done_at;
  bool gives_up = false;  // an event requires the whole network in one process
  bool is_asked_to_end = false;
};

// Holds the progress of a shard, for display.
struct ShardProgress {
  std::atomic<int64_t> now_ps{0};
  std::atomic<uint64_t> hops{0};
  std::atomic<double> share_done{0};  // of the run's calls
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

    // Sends a crossing to another shard. Waits while the ring is full.
    void Send(uint32_t to, const Crossing& crossing);
    // Ends the round: sends the report to all shards and waits for theirs. Returns them by shard;
    // they are valid until the next call. received() then has all crossings that others sent before
    // they ended the round, and perhaps later ones.
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
  // Requests the end of the run from all shards (ShardReport::is_asked_to_end).
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
