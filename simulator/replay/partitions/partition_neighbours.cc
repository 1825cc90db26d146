// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/partitions/partition_neighbours.h"

#include <algorithm>

#include "simulator/units/time_end.h"

namespace railyard {
namespace {

// Returns true if no rank ends before all have begun.
bool NeedsAllRanks(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
         kind == CollectiveKind::kReduceScatter;
}

bool IsIn(const Job& job, CommunicatorIndex communicator, GlobalRank rank) {
  const auto& of_rank = job.memberships[rank];
  const auto it = std::ranges::lower_bound(of_rank, communicator, {},
                                           &std::pair<CommunicatorIndex, RankIndex>::first);
  return it != of_rank.end() && it->first == communicator;
}

}  // namespace

bool PartitionNeighbours::Touches(const Call& call, const Partition& partition) {
  if (calls_.OperationOf(call).is_compute()) return false;
  if (!partition.may_touch[calls_.CollectiveOf(call).communicator]) return false;
  const std::vector<GpuIndex>& gpus = plans_.OnNetworkOf(call).gpus;
  return std::ranges::any_of(partition.gpus, [&](GpuIndex gpu) {
    const DeviceId nic = NicOf(gpu);
    return std::ranges::any_of(gpus, [&](GpuIndex other) { return NicOf(other) == nic; });
  });
}

// Returns the calls by rank, then in the order of its program.
std::vector<PartitionNeighbours::NearCall> PartitionNeighbours::CallsNear(
    const Partition& partition, std::span<const Call> own, int64_t now_ps) const {
  std::vector<NearCall> near;
  const auto add = [&](NearCall call) {
    if (!partition.is_near[call.call.gpu()]) return;
    if (std::ranges::find(own, call.call) == own.end()) near.push_back(call);
  };
  for (const StreamRunner::Running& running : streams_.running()) {
    if (running.is_free()) continue;
    add({.call = running.call,
         .begin_ps = running.start_ps,
         .end_ps = std::max(now_ps, running.replayed_end_ps),
         .is_replayed = running.replayed_end_ps != 0,
         .is_launched = running.is_launched});
  }
  for (const StreamRunner::Pending& pending : streams_.pending()) {
    add({.call = streams_.CallOf(pending),
         .begin_ps = pending.begin_ps,
         .end_ps = pending.begin_ps});
  }
  for (const Call& call : own) near.push_back({.call = call, .is_own = true});
  std::ranges::sort(near, [](const NearCall& a, const NearCall& b) {
    return std::pair(a.call.rank, a.call.index) < std::pair(b.call.rank, b.call.index);
  });
  return near;
}

bool PartitionNeighbours::MayTouch(const Partition& partition, std::span<const Call> own,
                                   int64_t now_ps, int64_t until_ps) {
  if (!partition.of_nics) return false;
  const std::vector<NearCall> near = CallsNear(partition, own, now_ps);
  for (size_t i = 0; i < near.size();) {
    const size_t first = i;
    while (i < near.size() && near[i].call.rank == near[first].call.rank) ++i;
    if (MayRankTouch(partition, own, std::span(near).subspan(first, i - first), now_ps, until_ps)) {
      return true;
    }
  }
  return false;
}

// In a collective of which all ranks need all data or send all, each sends or receives at least
// half of what the busiest link carries.
int64_t PartitionNeighbours::LeastDurationPs(const Call& call) {
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  const int64_t transfer_ps =
      NeedsAllRanks(calls_.job().collectives[collective].kind) ? plans_.BoundOf(collective) / 2 : 0;
  return map_.least_launch_ps() + transfer_ps;
}

// Returns true if the call, which runs on another rank, ends only after calls of `own`: it needs
// a rank of them that begins its part of the collective after its own call.
bool PartitionNeighbours::EndsAfter(const Call& call, std::span<const Call> own) const {
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  const Job& job = calls_.job();
  if (!NeedsAllRanks(job.collectives[collective].kind)) return false;
  return std::ranges::any_of(own, [&](const Call& before) {
    if (!IsIn(job, job.collectives[collective].communicator, before.rank)) return false;
    const std::optional<Call> later = LaterCallOf(collective, before);
    return later && calls_.OperationOf(*later).stream == calls_.OperationOf(before).stream;
  });
}

// Returns true if the call, which has been launched on another rank and uses the partition's NICs,
// sends nothing to them before ranks of the partition's calls, `own`, begin theirs.
bool PartitionNeighbours::SendsAfter(const Call& call, std::span<const Call> own) {
  const CollectiveIndex collective = calls_.CollectiveNumberOf(call);
  const JobCollective& of_job = calls_.job().collectives[collective];
  const PlanCache::OnNetwork& on_network = plans_.OnNetworkOf(call);
  if (!NeedsAllRanks(of_job.kind) || on_network.is_relayed) return false;
  return std::ranges::all_of(own, [&](const Call& of_partition) {
    const GpuIndex gpu = of_partition.gpu();
    return std::ranges::all_of(on_network.gpus, [&](GpuIndex used) {
      if (NicOf(used) != NicOf(gpu)) return true;
      return used == gpu && call.gpu() != gpu && LaterCallOf(collective, of_partition) &&
             host_.WaitsFor(of_job.communicator, call.gpu(), gpu);
    });
  });
}

// Returns the rank's call of the collective if it comes soon after `before` in the rank's program,
// and has not begun.
std::optional<Call> PartitionNeighbours::LaterCallOf(CollectiveIndex collective,
                                                     const Call& before) const {
  constexpr size_t kOperationsMax = 256;
  const std::vector<JobOperation>& program = calls_.job().operations[before.rank];
  const size_t end = std::min(program.size(), before.index + 1 + kOperationsMax);
  for (uint32_t index = before.index + 1; index < end; ++index) {
    const Call call{before.rank, index};
    if (program[index].is_compute() || calls_.CollectiveNumberOf(call) != collective) continue;
    return ledger_.HasBegun(call) ? std::nullopt : std::optional(call);
  }
  return std::nullopt;
}

// Returns true if a rank with these calls, which run or will begin and are in its program's order,
// may touch the partition before `until_ps`. It follows their successors, each with the earliest
// time that its dependencies allow.
bool PartitionNeighbours::MayRankTouch(const Partition& partition, std::span<const Call> own,
                                       std::span<const NearCall> near, int64_t now_ps,
                                       int64_t until_ps) {
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
      if (may_touch && end_ps < until_ps && EndsAfter(call.call, own)) end_ps = until_ps;
      may_touch = may_touch && !(call.is_launched && Touches(call.call, partition) &&
                                 SendsAfter(call.call, own));
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
