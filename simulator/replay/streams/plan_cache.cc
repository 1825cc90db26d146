// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/plan_cache.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/expert_costs.h"
#include "workloads/collectives/replayable.h"
#include "workloads/experts/expert_kernels.h"
#include "workloads/experts/expert_schedule.h"
#include "workloads/layout/fabric_layout.h"

namespace railyard {
namespace {

// Send and Recv, for which NCCL chooses no algorithm, cost what a ring's steps do; with LL, a
// direct exchange's.
constexpr ReplayChoice kP2pCosts = {Algorithm::kRing, Protocol::kSimple};
constexpr ReplayChoice kP2pLlCosts = {Algorithm::kDirect, Protocol::kLl};

}  // namespace

PlanCache::PlanCache(const FabricGraph& graph, const Job& job, NcclSettings nccl, GpuCosts gpu,
                     const NicSettings& nic, const MovedConnections& moved,
                     const CommunicatorPlanners& planners)
    : graph_(graph),
      job_(job),
      nccl_(std::move(nccl)),
      gpu_(gpu),
      moved_(moved),
      bound_model_(graph, nic) {
  for (CommunicatorIndex i{}; i < job.communicators.size(); ++i) {
    communicators_.push_back(BuildCommunicator(i, planners.empty() ? nullptr : planners[i]));
  }
  FindP2pCalls();
}

PlanCache::Communicator PlanCache::BuildCommunicator(
    CommunicatorIndex number, std::shared_ptr<const NcclPlanner> planner) const {
  const TraceCommunicator& traced = job_.communicators[number];
  Communicator communicator;
  communicator.gpus = GpusOf(traced);
  communicator.planner = planner != nullptr
                             ? std::move(planner)
                             : std::make_shared<const NcclPlanner>(LayoutOf(graph_, traced), nccl_);
  return communicator;
}

void PlanCache::FindP2pCalls() {
  p2p_calls_.assign(job_.collectives.size(), {});
  for (GlobalRank rank{0}; rank < job_.rank_count; ++rank) {
    const std::vector<JobOperation>& operations = job_.operations[rank];
    for (uint32_t index = 0; index < operations.size(); ++index) {
      if (!operations[index].is_p2p) continue;
      p2p_calls_[job_.CollectiveOf(rank, operations[index])].push_back({rank, index});
    }
  }
}

void PlanCache::Relocate(PartIndex part) {
  for (CommunicatorIndex i{}; i < communicators_.size(); ++i) {
    if (job_.PartOf(i) == part) communicators_[i] = BuildCommunicator(i, nullptr);
  }
  FindP2pCalls();
}

// --- Plans ---------------------------------------------------------------------------------------

PlanCache::Key PlanCache::KeyOf(CollectiveIndex id) const {
  const JobCollective& collective = job_.collectives[id];
  const ReplayChoice stated = StatedChoice(collective);
  return {static_cast<uint64_t>(collective.kind), collective.count,
          static_cast<uint64_t>(collective.datatype), collective.root,
          static_cast<uint64_t>(stated.algorithm) << 8 | static_cast<uint64_t>(stated.protocol)};
}

ReplayChoice PlanCache::ChoiceOf(CollectiveIndex id) const {
  const JobCollective& collective = job_.collectives[id];
  const std::optional<ReplayChoice> choice =
      planner(collective.communicator).Choose(collective, StatedChoice(collective));
  SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
  return *choice;
}

ReplayChoice PlanCache::ReplayedBy(CollectiveIndex id) const {
  const std::map<Key, Plan>& plans = communicators_[job_.collectives[id].communicator].plans;
  const auto plan = plans.find(KeyOf(id));
  const bool is_planned = plan != plans.end() && plan->second.schedule != nullptr;
  return is_planned ? plan->second.choice : ChoiceOf(id);
}

PlanCache::Plan& PlanCache::PlanOf(CollectiveIndex id) {
  const JobCollective& collective = job_.collectives[id];
  Communicator& communicator = communicators_[collective.communicator];
  Plan& plan = communicator.plans[KeyOf(id)];
  if (plan.schedule) return plan;
  plan.choice = ChoiceOf(id);
  plan.schedule = communicator.planner->Plan(collective, plan.choice);
  plan.costs = gpu_.Of(communicator.planner->layout(), plan.choice, plan.schedule->channel_count());
  return plan;
}

StepCosts PlanCache::CostsOf(CollectiveIndex id) {
  const JobCollective& collective = job_.collectives[id];
  if (!collective.is_p2p()) return PlanOf(id).costs;
  const CommunicatorLayout& layout = planner(collective.communicator).layout();
  // A collective of a job that is left out has no calls.
  if (collective.expert_kernel == ExpertKernel::kNone || p2p_calls_[id].empty()) {
    return gpu_.Of(layout, kP2pCosts);
  }
  const Call& call = p2p_calls_[id].front();
  const JobOperation& operation = job_.operations[call.rank][call.index];
  return ExpertCosts(gpu_, layout, job_.p2p_calls[operation.p2p_first].expert);
}

StepCosts PlanCache::LineCostsOf(CollectiveIndex id) {
  const JobCollective& collective = job_.collectives[id];
  if (!collective.is_p2p()) return PlanOf(id).costs;
  if (collective.expert_kernel != ExpertKernel::kNone) return CostsOf(id);
  return gpu_.Of(planner(collective.communicator).layout(), kP2pLlCosts);
}

std::shared_ptr<const CollectiveSchedule> PlanCache::ScheduleOf(const Call& call) {
  const JobOperation& operation = job_.operations[call.rank][call.index];
  const CollectiveIndex id = job_.CollectiveOf(call.rank, operation);
  const JobCollective& collective = job_.collectives[id];
  if (!collective.is_p2p()) return PlanOf(id).schedule;
  if (collective.expert_kernel != ExpertKernel::kNone) {
    return std::make_shared<ExpertSchedule>(
        planner(collective.communicator).layout(),
        job_.CommunicatorRank(collective.communicator, call.rank),
        std::span(job_.p2p_calls.data() + operation.p2p_first, operation.p2p_count));
  }
  return planner(collective.communicator)
      .PlanP2p(job_.CommunicatorRank(collective.communicator, call.rank),
               job_.p2p_calls.data() + operation.p2p_first, operation.p2p_count,
               operation.in_place);
}

std::vector<std::string> PlanCache::Assumptions() const {
  std::set<std::string> assumptions;
  for (const Communicator& communicator : communicators_) {
    const auto& of_channels = communicator.planner->channels().assumptions;
    assumptions.insert(of_channels.begin(), of_channels.end());
  }
  return {assumptions.begin(), assumptions.end()};
}

// --- Bounds --------------------------------------------------------------------------------------

int64_t PlanCache::BoundOf(CollectiveIndex id) {
  const JobCollective& collective = job_.collectives[id];
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(id);
    if (plan.bound_ps < 0 || plan.bound_moves != moved_.move_count()) {
      plan.bound_ps = BoundOfSchedule(collective.communicator, *plan.schedule);
      plan.bound_moves = moved_.move_count();
    }
    return plan.bound_ps;
  }
  for (const Call& call : p2p_calls_[id]) {
    const JobOperation& operation = job_.operations[call.rank][call.index];
    const RankIndex rank = job_.CommunicatorRank(collective.communicator, call.rank);
    for (uint32_t i = 0; i < operation.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[operation.p2p_first + i];
      if (!p2p.is_send || p2p.peer == rank) continue;
      AddToBound(collective.communicator, 0, rank, p2p.peer, ConnectionUseOf(p2p.expert),
                 p2p.bytes);
    }
  }
  return bound_model_.Take();
}

void PlanCache::AddToBound(CommunicatorIndex number, uint32_t channel, RankIndex from, RankIndex to,
                           ConnectionUse use, uint64_t bytes) {
  // A connection that took other ways before has no least load of a link.
  if (moved_.move_count() > 0 && moved_.HasMoved(number, channel, from, to, use)) return;
  const ConnectionRoute route = planner(number).RouteOf(channel, from, to, use);
  const GpuIndex from_gpu = gpus(number)[from];
  const GpuIndex injecting_gpu =
      route.network ? graph_.GpuOfServer(from_gpu, route.sending_local_index) : from_gpu;
  bound_model_.Add(route.network, from_gpu, gpus(number)[to], injecting_gpu, bytes);
}

int64_t PlanCache::BoundOfSchedule(CommunicatorIndex communicator,
                                   const CollectiveSchedule& schedule) {
  std::map<std::pair<RankIndex, ConnectionUse>, uint64_t> sent;  // of one lane, by peer
  const auto add_lane = [&](const LaneId& lane) {
    const LanePeers peers = schedule.PeersOf(lane);
    const uint64_t steps = schedule.StepCount(lane);
    sent.clear();
    for (uint64_t i = 0; i < steps;) {
      const uint64_t alike = std::min(schedule.AlikeFrom(lane, i), steps - i);
      const Step step = schedule.StepAt(lane, i);
      const uint64_t bytes = alike * WireBytes(schedule.message_rule(), step.bytes);
      for (const LanePeer& peer : peers.send_to) {
        if (step.send_to == kAllPeers || step.send_to == static_cast<int32_t>(peer.rank)) {
          sent[{peer.rank, peer.use}] += bytes;
        }
      }
      i += alike;
    }
    for (const auto& [peer, bytes] : sent) {
      // A switch makes many of one message and one of many: no least load follows from these.
      if (peer.second == ConnectionUse::kSwitchOperand) continue;
      if (peer.second == ConnectionUse::kSwitchResult) continue;
      // A sum crosses its NIC once each way, however many take part.
      if (peer.second == ConnectionUse::kNetworkSum && peer.first != lane.rank) continue;
      AddToBound(communicator, lane.channel, lane.rank, peer.first, peer.second, bytes);
    }
  };
  for (RankIndex rank{0}; rank < schedule.rank_count(); ++rank) {
    ForEachLaneOf(schedule, rank, add_lane);
  }
  return bound_model_.Take();
}

// --- Schedules of calls --------------------------------------------------------------------------

const PlanCache::OnNetwork& PlanCache::OnNetworkOf(const Call& call) {
  const CollectiveIndex id = job_.CollectiveOf(call.rank, job_.operations[call.rank][call.index]);
  const JobCollective& collective = job_.collectives[id];
  const Communicator& communicator = communicators_[collective.communicator];
  OnNetwork* found = &scratch_on_network_;
  if (!collective.is_p2p()) {
    Plan& plan = PlanOf(id);
    plan.on_network.resize(communicator.gpus.size());
    std::optional<OnNetwork>& of_rank =
        plan.on_network[job_.CommunicatorRank(collective.communicator, call.rank)];
    if (of_rank) return *of_rank;
    found = &of_rank.emplace();
  }
  *found = {};
  AddOnNetwork(communicator, collective, call, *found);
  std::vector<GpuIndex>& gpus = found->gpus;
  std::ranges::sort(gpus);
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  return *found;
}

void PlanCache::AddOnNetwork(const Communicator& communicator, const JobCollective& collective,
                             const Call& call, OnNetwork& on_network) {
  const RankIndex own = job_.CommunicatorRank(collective.communicator, call.rank);
  const auto add = [&](uint32_t channel, RankIndex from, RankIndex to, ConnectionUse use) {
    if (use == ConnectionUse::kSwitchOperand || use == ConnectionUse::kSwitchResult) return;
    if (use == ConnectionUse::kNetworkSum) {
      on_network.gpus.push_back(communicator.gpus[own]);
      return;
    }
    const ConnectionRoute route = communicator.planner->RouteOf(channel, from, to, use);
    if (!route.network) return;
    const GpuIndex injecting =
        graph_.GpuOfServer(communicator.gpus[from], route.sending_local_index);
    if (injecting != communicator.gpus[from]) on_network.is_relayed = true;
    on_network.gpus.push_back(injecting);
    on_network.gpus.push_back(communicator.gpus[to]);
  };
  const JobOperation& operation = job_.operations[call.rank][call.index];
  if (collective.is_p2p()) {
    for (uint32_t i = 0; i < operation.p2p_count; ++i) {
      const P2pCall& p2p = job_.p2p_calls[operation.p2p_first + i];
      if (p2p.peer == own) continue;
      add(0, p2p.is_send ? own : p2p.peer, p2p.is_send ? p2p.peer : own,
          ConnectionUseOf(p2p.expert));
    }
    return;
  }
  const CollectiveSchedule& schedule = ScheduleOf(job_.CollectiveOf(call.rank, operation));
  ForEachLaneOf(schedule, own, [&](const LaneId& lane) {
    const LanePeers peers = schedule.PeersOf(lane);
    for (const LanePeer& peer : peers.send_to) add(lane.channel, own, peer.rank, peer.use);
    for (const LanePeer& peer : peers.recv_from) add(lane.channel, peer.rank, own, peer.use);
  });
}

}  // namespace railyard
