// SPDX-License-Identifier: GPL-2.0-only
// Whether anything that is simulated has to do with a partition that is replayed.
#include <algorithm>
#include <utility>

#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/time_end.h"

namespace railyard {
namespace {

template <typename Visit>
void ForEachLaneOf(const CollectiveSchedule& schedule, uint32_t rank, Visit visit) {
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
      for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
        visit(LaneId{rank, channel, batch, lane});
      }
    }
  }
}

}  // namespace

// Something waits for how far a collective has come.
bool ReplayEngine::IsProgressWatched() const {
  return std::ranges::any_of(watched_, [this](const auto& watched) {
    return times_[watched.first].calls_ended < call_count_[watched.first];
  });
}

// Whether nothing can happen to the partition before all it remembers of the episode has passed.
bool ReplayEngine::CanReplay(const Partition& partition, const std::vector<PartitionCall>& calls,
                             const Episode& episode) {
  const int64_t settled_ps =
      episode.duration_ps + partition_cache_.state(episode.end_state).instants_ahead_ps;
  // Aborts are known so long ahead.
  if (settled_ps >= kAbortNoticePs) return false;
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t rank = calls[i].rank;
    const auto is_of_partition = [&](const JobOperation& call) {
      return partition.of_nics ? UsesNics(rank, call) : UsesNvlinks(rank, call);
    };
    const int64_t gap_ps =
        LeastGapPs(job_.operations[rank], calls[i].number - first_number_[rank], is_of_partition);
    if (gap_ps == kNeverPs) continue;
    if (gap_ps + least_launch_ps_ < settled_ps - episode.operations[i].end_ps) return false;
  }
  const int64_t settled_at_ps = calls.front().begin_ps + settled_ps;
  return settled_at_ps < NextDisturbancePs(partition.is_faulty) &&
         !MayBeTouched(partition, calls, settled_at_ps);
}

// When the next event is that may end the job, or simulated time, or, where faults are to be
// considered, bring one.
int64_t ReplayEngine::NextDisturbancePs(bool by_faults) const {
  int64_t next_ps = kTimeEndPs;
  engine_.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    const PendingMeans pending = engine_.TraitsOf(event_class).pending;
    if (pending == PendingMeans::kAnything || pending == PendingMeans::kObserver ||
        (pending == PendingMeans::kChange && by_faults)) {
      next_ps = std::min(next_ps, time_ps);
    }
  });
  return next_ps;
}

// GPUs whose NICs what a rank's call sends crosses, or what is sent to the rank.
const std::vector<uint32_t>& ReplayEngine::GpusOnNetworkOf(uint32_t rank, uint32_t index) {
  const JobOperation& call = job_.operations[rank][index];
  const JobCollective& collective = job_.collectives[job_.CollectiveOf(rank, call)];
  const Communicator& communicator = communicators_[collective.communicator];
  const uint32_t own = job_.CommunicatorRank(collective.communicator, rank);
  std::vector<uint32_t>* found = &scratch_gpus_;
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(collective);
    plan.gpus_on_network.resize(communicator.gpus.size());
    std::optional<std::vector<uint32_t>>& of_rank = plan.gpus_on_network[own];
    if (of_rank) return *of_rank;
    found = &of_rank.emplace();
  }
  found->clear();
  const auto add = [&](uint32_t channel, uint32_t from, uint32_t to, ConnectionUse use) {
    if (use == ConnectionUse::kSwitchOperand || use == ConnectionUse::kSwitchResult) return;
    if (use == ConnectionUse::kNetworkSum) {
      found->push_back(communicator.gpus[own]);
      return;
    }
    const ConnectionRoute route = communicator.planner->RouteOf(channel, from, to, use);
    if (!route.network) return;
    found->push_back(executor_->connection_table().GpuOfServer(communicator.gpus[from],
                                                               route.sending_local_index));
    found->push_back(communicator.gpus[to]);
  };
  if (collective.is_p2p()) {
    for (uint32_t i = 0; i < call.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[call.p2p_first + i];
      if (p2p.peer == own) continue;
      add(0, p2p.is_send ? own : p2p.peer, p2p.is_send ? p2p.peer : own,
          ConnectionUse::kPointToPoint);
    }
  } else {
    const CollectiveSchedule& schedule = *PlanOf(collective).schedule;
    ForEachLaneOf(schedule, own, [&](const LaneId& lane) {
      const LanePeers peers = schedule.PeersOf(lane);
      for (const LanePeer& peer : peers.send_to) add(lane.channel, own, peer.rank, peer.use);
      for (const LanePeer& peer : peers.recv_from) add(lane.channel, peer.rank, own, peer.use);
    });
  }
  std::ranges::sort(*found);
  found->erase(std::unique(found->begin(), found->end()), found->end());
  return *found;
}

bool ReplayEngine::Touches(uint32_t rank, uint32_t index, const Partition& partition) {
  const JobOperation& call = job_.operations[rank][index];
  if (call.is_compute()) return false;
  const JobCollective& collective = job_.collectives[job_.CollectiveOf(rank, call)];
  if (!partition.may_touch[collective.communicator]) return false;
  const std::vector<uint32_t>& gpus = GpusOnNetworkOf(rank, index);
  return std::ranges::any_of(partition.gpus, [&](uint32_t gpu) {
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    return std::ranges::any_of(
        gpus, [&](uint32_t other) { return graph_.NicOfGpu(graph_.gpus()[other]) == nic; });
  });
}

// Whether something but the calls uses the partition's NICs, or begins to before `until_ps`. What
// waits for nothing but ends is taken to begin at once. If it is wrong, CheckIsApart() finds out.
bool ReplayEngine::MayBeTouched(const Partition& partition, const std::vector<PartitionCall>& calls,
                                int64_t until_ps) {
  if (!partition.of_nics) return false;
  std::vector<NearCall> near;
  const auto add = [&](uint32_t rank, uint32_t index, NearCall call) {
    if (!partition.is_near[rank]) return;
    call.rank = rank;
    call.index = index;
    call.is_own = std::ranges::find(calls, first_number_[rank] + index, &PartitionCall::number) !=
                  calls.end();
    near.push_back(call);
  };
  for (const Running& running : running_) {
    if (running.rank == kNone) continue;
    add(running.rank, running.index,
        {.begin_ps = running.start_ps,
         .end_ps = std::max(engine_.NowPs(), running.told_end_ps),
         .is_told = running.told_end_ps != 0});
  }
  for (const Pending& pending : pending_) {
    add(pending.rank, pending.number - first_number_[pending.rank],
        {.begin_ps = pending.begin_ps, .end_ps = pending.begin_ps});
  }
  std::ranges::sort(near, [](const NearCall& a, const NearCall& b) {
    return std::pair(a.rank, a.index) < std::pair(b.rank, b.index);
  });
  for (size_t i = 0; i < near.size();) {
    const size_t first = i;
    while (i < near.size() && near[i].rank == near[first].rank) ++i;
    if (MayTouchSoon(partition, std::span(near).subspan(first, i - first), until_ps)) return true;
  }
  return false;
}

// The same for a rank whose calls that run or will begin these are, in its program's order: goes
// through what follows upon them, the earliest time of each known from what it waits for.
bool ReplayEngine::MayTouchSoon(const Partition& partition, std::span<const NearCall> near,
                                int64_t until_ps) {
  constexpr int64_t kEnded = -1;
  const uint32_t rank = near.front().rank;
  const uint32_t first = near.front().index;
  const std::vector<JobOperation>& program = job_.operations[rank];
  std::vector<int64_t>& ends_ps = scratch_ends_ps_;  // from `first` on, at the earliest
  auto& end_of_stream = scratch_end_of_stream_;      // of its last one so far
  ends_ps.clear();
  end_of_stream.clear();
  uint32_t last = near.back().index;
  for (uint32_t index = first; index <= last; ++index) {
    const JobOperation& operation = program[index];
    auto stream =
        std::ranges::find(end_of_stream, operation.stream, &std::pair<uint32_t, int64_t>::first);
    if (stream == end_of_stream.end()) {
      stream = end_of_stream.insert(stream, {operation.stream, kEnded});
    }
    bool may_touch = false;
    int64_t end_ps = kEnded;
    if (near.front().index == index) {
      const NearCall& call = near.front();
      may_touch = !call.is_own && !call.is_told && call.begin_ps + least_launch_ps_ < until_ps;
      end_ps = call.is_own ? until_ps : call.end_ps;
      if (near.size() > 1) near = near.subspan(1);
    } else if (operation.is_compute() || !has_begun_[first_number_[rank] + index]) {
      const bool waits = operation.after != JobOperation::kNone && operation.after >= first;
      end_ps = std::max(stream->second, waits ? ends_ps[operation.after - first] : kEnded);
      // It may have begun to compute long since.
      end_ps = end_ps == kEnded ? engine_.NowPs() : SumPs(end_ps, operation.compute_before_ps);
      may_touch = !operation.is_compute() && end_ps + least_launch_ps_ < until_ps;
    }
    if (may_touch && Touches(rank, index, partition)) return true;
    ends_ps.push_back(end_ps);
    stream->second = end_ps;
    if (end_ps != kEnded && end_ps < until_ps) {
      last = std::max(last, order_.LastFollowerOf(rank, index));
    }
  }
  return false;
}

// A call that is simulated begins to use the network.
void ReplayEngine::CheckIsApart(const Running& running) {
  if (replayed_partitions_ == 0 || !UsesNics(running.rank, CallOf(running))) return;
  for (const Partition& partition : partitions_) {
    if (partition.of_nics && partition.episode && partition.episode->is_replayed &&
        Touches(running.rank, running.index, partition)) {
      throw FabricNetwork::NotApart();
    }
  }
}

}  // namespace railyard
