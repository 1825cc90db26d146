// SPDX-License-Identifier: GPL-2.0-only
// Defines the critical path of an event of a collective. It is the chain of dependent waits that
// led to the event from the start of the operation where the chain begins, with the time that each
// cause took. An event that waits for several others continues the path of the last of them, so the
// times of a path always add up to its length.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include "simulator/units/job_ids.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class PathCause : uint8_t {
  kWork,            // GPUs at their own speed, proxies, flags
  kTransit,         // messages on their way: on wires, in queues, paused
  kRerouted,        // the same, of queue pairs that no longer use their first path
  kTimeout,         // a queue pair has lost packets and waits for its timer
  kRetransmission,  // it requests the missing packets, or sends them again
  kSlowPeer,        // a GPU is slower than its own speed, stands still, or began later than others
};
inline constexpr size_t kPathCauseCount = 6;
using PathTimes = std::array<int64_t, kPathCauseCount>;  // ps, by PathCause

// Holds what a path consists of. `Gpu` is what its GPUs are numbered by: an episode of the replay
// cache numbers them by places, for it serves partitions of other GPUs.
template <typename Gpu>
struct PathRecord {
  int64_t origin_ps = 0;
  PathTimes spent_ps{};
  int64_t worst_ps = 0;         // time of the transfer or GPU that took longest
  Gpu worst_from = Gpu::kNone;  // its GPUs; equal for the work of one GPU
  Gpu worst_to = Gpu::kNone;
  Gpu origin_gpu = Gpu::kNone;  // of the operation at which the path begins
  CollectiveIndex collective = CollectiveIndex::kNone;

  // Returns the path with `name(gpu)` in place of each GPU.
  template <typename Name, typename Other = std::invoke_result_t<Name, Gpu>>
  PathRecord<Other> Renamed(Name name) const {
    const auto renamed = [&](Gpu gpu) { return gpu == Gpu::kNone ? Other::kNone : name(gpu); };
    return {.origin_ps = origin_ps,
            .spent_ps = spent_ps,
            .worst_ps = worst_ps,
            .worst_from = renamed(worst_from),
            .worst_to = renamed(worst_to),
            .origin_gpu = renamed(origin_gpu),
            .collective = collective};
  }
};

struct CriticalPath : PathRecord<GpuIndex> {
  int64_t SpentPs(PathCause cause) const { return spent_ps[static_cast<size_t>(cause)]; }
  int64_t EndPs() const { return std::accumulate(spent_ps.begin(), spent_ps.end(), origin_ps); }
  void Spend(PathCause cause, int64_t time_ps) { spent_ps[static_cast<size_t>(cause)] += time_ps; }
  // Extends the path to `time_ps` and attributes the added time to `rest`.
  void ExtendTo(int64_t time_ps, PathCause rest) {
    const int64_t end_ps = EndPs();
    if (time_ps > end_ps) Spend(rest, time_ps - end_ps);
  }
  // Records that the transfer between these GPUs, or the work of one of them, took `time_ps` of the
  // path. The path keeps the worst such pair.
  void Blame(GpuIndex from_gpu, GpuIndex to_gpu, int64_t time_ps) {
    if (from_gpu == worst_from && to_gpu == worst_to) {
      worst_ps += time_ps;
    } else if (time_ps > worst_ps) {
      worst_ps = time_ps;
      worst_from = from_gpu;
      worst_to = to_gpu;
    }
  }
  // Returns whether this path ends later than `other`. Ties are broken by GPU numbers and times, so
  // the result does not depend on the order of comparisons.
  bool EndsAfter(const CriticalPath& other) const;
  // Makes this path continue `last` if `last` ends later. If `last` is of another collective, only
  // its time after this path began to wait for it is added.
  void WaitFor(const CriticalPath& last);
};

}  // namespace railyard
