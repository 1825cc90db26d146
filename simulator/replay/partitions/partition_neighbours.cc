// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/partition_neighbours.h"

#include <algorithm>

#include "simulator/units/time_end.h"

namespace railyard {

bool PartitionNeighbours::Touches(const Call& call, const Partition& partition) {
  if (calls_.OperationOf(call).is_compute()) return false;
  if (!partition.may_touch[calls_.CollectiveOf(call).communicator]) return false;
  const std::vector<GpuIndex>& gpus = plans_.GpusOnNetworkOf(call);
  return std::ranges::any_of(partition.gpus, [&](GpuIndex gpu) {
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    return std::ranges::any_of(
        gpus, [&](GpuIndex other) { return graph_.NicOfGpu(graph_.gpus()[other]) == nic; });
  });
}

// Returns the calls by rank, then in the order of its program.
std::vector<PartitionNeighbours::NearCall> PartitionNeighbours::CallsNear(
    const Partition& partition, std::span<const CallNumber> numbers, int64_t now_ps) const {
  std::vector<NearCall> near;
  const auto add = [&](NearCall call) {
    if (!partition.is_near[call.call.gpu()]) return;
    call.is_own = std::ranges::find(numbers, calls_.NumberOf(call.call)) != numbers.end();
    near.push_back(call);
  };
  for (const StreamRunner::Running& running : streams_.running()) {
    if (running.is_free()) continue;
    add({.call = running.call,
         .begin_ps = running.start_ps,
         .end_ps = std::max(now_ps, running.replayed_end_ps),
         .is_replayed = running.replayed_end_ps != 0});
  }
  for (const StreamRunner::Pending& pending : streams_.pending()) {
    add({.call = streams_.CallOf(pending),
         .begin_ps = pending.begin_ps,
         .end_ps = pending.begin_ps});
  }
  std::ranges::sort(near, [](const NearCall& a, const NearCall& b) {
    return std::pair(a.call.rank, a.call.index) < std::pair(b.call.rank, b.call.index);
  });
  return near;
}

bool PartitionNeighbours::MayTouch(const Partition& partition, std::span<const CallNumber> numbers,
                                   int64_t now_ps, int64_t until_ps) {
  if (!partition.of_nics) return false;
  const std::vector<NearCall> near = CallsNear(partition, numbers, now_ps);
  for (size_t i = 0; i < near.size();) {
    const size_t first = i;
    while (i < near.size() && near[i].call.rank == near[first].call.rank) ++i;
    if (MayRankTouch(partition, std::span(near).subspan(first, i - first), now_ps, until_ps)) {
      return true;
    }
  }
  return false;
}

// In a collective of which all ranks need all data or send all, each sends or receives at least
// half of what the busiest link carries.
int64_t PartitionNeighbours::LeastDurationPs(const Call& call) {
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  switch (calls_.job().collectives[collective].kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return map_.least_launch_ps() + plans_.BoundOf(collective) / 2;
    default:
      return map_.least_launch_ps();
  }
}

// Returns true if a rank with these calls, which run or will begin and are in its program's order,
// may touch the partition before `until_ps`. It follows their successors, each with the earliest
// time that its dependencies allow.
bool PartitionNeighbours::MayRankTouch(const Partition& partition, std::span<const NearCall> near,
                                       int64_t now_ps, int64_t until_ps) {
  constexpr int64_t kEnded = -1;
  const int64_t least_launch_ps = map_.least_launch_ps();
  const GlobalRank rank = near.front().call.rank;
  const uint32_t first = near.front().call.index;
  const std::vector<JobOperation>& program = calls_.job().operations[rank];
  ends_ps_.clear();        // from `first` on, at the earliest
  end_of_stream_.clear();  // of its last one so far
  uint32_t last = near.back().call.index;
  for (uint32_t index = first; index <= last; ++index) {
    const JobOperation& operation = program[index];
    auto stream =
        std::ranges::find(end_of_stream_, operation.stream, &std::pair<uint32_t, int64_t>::first);
    if (stream == end_of_stream_.end()) {
      stream = end_of_stream_.insert(stream, {operation.stream, kEnded});
    }
    bool may_touch = false;
    int64_t end_ps = kEnded;
    if (near.front().call.index == index) {
      const NearCall& call = near.front();
      may_touch = !call.is_own && !call.is_replayed && call.begin_ps + least_launch_ps < until_ps;
      end_ps = call.is_own ? until_ps : call.end_ps;
      if (!call.is_own && !call.is_replayed && end_ps < until_ps) {
        end_ps = std::max(end_ps, call.begin_ps + LeastDurationPs(call.call));
      }
      if (near.size() > 1) near = near.subspan(1);
    } else if (operation.is_compute() || !ledger_.HasBegun({rank, index})) {
      const bool waits = operation.after != JobOperation::kNone && operation.after >= first;
      end_ps = std::max(stream->second, waits ? ends_ps_[operation.after - first] : kEnded);
      // It may have begun to compute long since.
      end_ps = end_ps == kEnded ? now_ps : SumPs(end_ps, operation.compute_before_ps);
      may_touch = !operation.is_compute() && end_ps + least_launch_ps < until_ps;
      if (may_touch) end_ps += LeastDurationPs({rank, index});
    }
    if (may_touch && Touches({rank, index}, partition)) return true;
    ends_ps_.push_back(end_ps);
    stream->second = end_ps;
    if (end_ps != kEnded && end_ps < until_ps) {
      last = std::max(last, streams_.LastFollowerOf({rank, index}));
    }
  }
  return false;
}

}  // namespace railyard
