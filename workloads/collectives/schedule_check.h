// SPDX-License-Identifier: GPL-2.0-only
// Runs a schedule without time and checks its result: every rank ends with each contribution
// exactly once, every receive has its send, and the bytes agree.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "traces/trace/trace.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

struct ScheduleSubject {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The whole vector, or one rank's block (AllGather, ReduceScatter, AlltoAll, Gather, Scatter).
  // SENDRECV (kSend) does not use it: its messages need only agree with each other.
  uint64_t block_bytes = 0;
  RankIndex root{0};
  bool in_place = false;  // AlltoAll, Gather, Scatter: no rank copies its own block
  // AlltoAll: all ranks have one schedule, whose block r x rank_count + s is what rank s sends to
  // rank r; else each rank has one of its messages.
  bool is_whole = false;
};

// Names the place of an error: a step, or the final state of a rank.
struct SchedulePlace {
  LaneId lane;
  std::optional<uint64_t> step;
};

// Returns an empty string if the schedule is correct, else the first error, which names rank,
// channel and step; `*place`, if not null, is set to its place. With `slots` of 0 connections
// buffer without limit, so only a cycle of dependencies is a deadlock; otherwise a step that sends
// waits while `slots` messages on the connection have not been received. `schedule_of(rank)` lets
// point-to-point schedules, which are per rank, be checked together.
std::string CheckSchedule(const ScheduleSubject& subject, uint32_t rank_count,
                          const std::function<const CollectiveSchedule&(RankIndex)>& schedule_of,
                          SchedulePlace* place = nullptr, uint32_t slots = 0);

}  // namespace railyard
