// SPDX-License-Identifier: GPL-2.0-only
// Whether anything that is simulated has to do with a component that is replayed.
#include <algorithm>
#include <utility>

#include "simulator/replay/replay_engine.h"

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

// Whether nothing can happen to the component before all it remembers of the episode has passed.
bool ReplayEngine::CanReplay(const Component& component, const std::vector<ComponentCall>& calls,
                             const Episode& episode) {
  const int64_t settled_ps =
      episode.duration_ps + component_cache_.state(episode.end_state).instants_ahead_ps;
  // Aborts are known so long ahead.
  if (settled_ps >= kAbortNoticePs) return false;
  const auto is_of_component = [&](const JobOperation& call) {
    return component.of_nics ? UsesNics(call) : UsesNvlinks(call);
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t rank = calls[i].rank;
    const int64_t gap_ps =
        LeastGapPs(job_.operations[rank], calls[i].number - first_number_[rank], is_of_component);
    if (gap_ps == kNeverPs) continue;
    if (gap_ps + least_launch_ps_ < settled_ps - episode.operations[i].end_ps) return false;
  }
  const int64_t settled_at_ps = calls.front().begin_ps + settled_ps;
  return settled_at_ps < NextDisturbancePs(component.is_faulty) &&
         !MayBeTouched(component, calls, settled_at_ps);
}

// When the next event is that may end the job or, where faults are to be considered, bring one.
int64_t ReplayEngine::NextDisturbancePs(bool by_faults) const {
  int64_t next_ps = kNeverPs;
  engine_.ForEachPending([&](int64_t time_ps, EventClass event_class) {
    const bool is_fault = event_class == EventClass::kFault || event_class == EventClass::kRouting;
    if (event_class == EventClass::kNs3 || event_class == EventClass::kLook ||
        (is_fault && by_faults)) {
      next_ps = std::min(next_ps, time_ps);
    }
  });
  return next_ps;
}

// GPUs whose NICs what a rank's call sends crosses, or what is sent to the rank.
const std::vector<uint32_t>& ReplayEngine::GpusOnNetworkOf(uint32_t rank, uint32_t index) {
  const JobOperation& call = job_.operations[rank][index];
  const JobCollective& collective = job_.collectives[call.collective];
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
    found->push_back(executor_->GpuOfServer(communicator.gpus[from], route.sending_local_index));
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

bool ReplayEngine::Touches(uint32_t rank, uint32_t index, const Component& component) {
  const JobOperation& call = job_.operations[rank][index];
  if (call.is_compute() || !component.may_touch[job_.collectives[call.collective].communicator]) {
    return false;
  }
  const std::vector<uint32_t>& gpus = GpusOnNetworkOf(rank, index);
  return std::ranges::any_of(component.gpus, [&](uint32_t gpu) {
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    return std::ranges::any_of(
        gpus, [&](uint32_t other) { return graph_.NicOfGpu(graph_.gpus()[other]) == nic; });
  });
}

// Whether something but the calls uses the component's NICs, or begins to before `until_ps`. What
// waits for nothing but ends is taken to begin at once. If it is wrong, CheckIsApart() finds out.
bool ReplayEngine::MayBeTouched(const Component& component, const std::vector<ComponentCall>& calls,
                                int64_t until_ps) {
  if (!component.of_nics) return false;
  const auto is_one = [&](uint32_t number) {
    return std::ranges::find(calls, number, &ComponentCall::number) != calls.end();
  };
  const auto begins_after = [&](uint32_t rank, uint32_t index, int64_t from_ps) {
    const std::vector<JobOperation>& program = job_.operations[rank];
    const uint32_t stream = program[index].stream;
    for (uint32_t next = index + 1; next < program.size() && from_ps < until_ps; ++next) {
      if (program[next].stream == stream) from_ps += program[next].compute_before_ps;
      if (from_ps + least_launch_ps_ < until_ps && !is_one(first_number_[rank] + next) &&
          Touches(rank, next, component)) {
        return true;
      }
    }
    return false;
  };
  const int64_t now_ps = engine_.NowPs();
  for (const Running& running : running_) {
    if (running.rank == kNone || !component.is_near[running.rank]) continue;
    const bool is_call = is_one(NumberOf(running));
    if (!is_call && running.told_end_ps == 0 && Touches(running.rank, running.index, component)) {
      return true;
    }
    if (begins_after(running.rank, running.index, std::max(now_ps, running.told_end_ps)) &&
        !is_call) {
      return true;
    }
  }
  return std::ranges::any_of(pending_, [&](const Pending& pending) {
    const uint32_t index = pending.number - first_number_[pending.rank];
    if (!component.is_near[pending.rank] || is_one(pending.number)) return false;
    return (pending.begin_ps < until_ps && Touches(pending.rank, index, component)) ||
           begins_after(pending.rank, index, pending.begin_ps);
  });
}

// A call that is simulated begins to use the network.
void ReplayEngine::CheckIsApart(const Running& running) {
  if (replayed_components_ == 0 || !UsesNics(CallOf(running))) return;
  for (const Component& component : components_) {
    if (component.of_nics && component.episode && component.episode->is_replayed &&
        Touches(running.rank, running.index, component)) {
      throw FabricNetwork::NotApart();
    }
  }
}

}  // namespace railyard
