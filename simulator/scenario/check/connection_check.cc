// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/connection_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "simulator/scenario/check/required_paths.h"
#include "workloads/experts/expert_kernels.h"
#include "workloads/layout/gpu_of_rank.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

// The connections that a communicator's calls open.
struct Use {
  std::vector<const JobCollective*> collectives;  // that NCCL chooses for, one of each kind of them
  bool all_to_all = false;                        // every rank sends to every other
  // Communicator ranks, from << 32 | to; else.
  std::map<ConnectionUse, std::unordered_set<uint64_t>> sends;
  std::unordered_set<uint64_t> relayed;  // of those, within a server of an expert kernel
};

std::vector<Use> UsesOf(const Job& job) {
  std::vector<Use> uses(job.communicators.size());
  using Choice = std::tuple<uint32_t, CollectiveKind, uint64_t, Algorithm, Protocol>;
  std::set<Choice> seen;
  Choice last;  // most calls are like the one before
  for (const JobCollective& collective : job.collectives) {
    if (collective.kind == CollectiveKind::kAllToAll && collective.is_p2p()) {
      uses[collective.communicator].all_to_all = true;
    }
    if (collective.is_p2p() || collective.bytes == 0) continue;
    const Choice choice = {collective.communicator, collective.kind, collective.bytes,
                           collective.logged_algorithm, collective.logged_protocol};
    if (choice == last && !seen.empty()) continue;
    last = choice;
    if (seen.insert(choice).second) {
      uses[collective.communicator].collectives.push_back(&collective);
    }
  }
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    for (const JobOperation& operation : job.operations[rank]) {
      if (!operation.is_p2p) continue;
      const JobCollective& collective = job.collectives[job.CollectiveOf(rank, operation)];
      if (uses[collective.communicator].all_to_all) continue;
      const RankIndex from = job.CommunicatorRank(collective.communicator, rank);
      for (uint32_t i = 0; i < operation.p2p_count; ++i) {
        const P2pCall& call = job.p2p_calls[operation.p2p_first + i];
        if (!call.is_send || call.peer == from) continue;
        const uint64_t send = uint64_t{from} << 32 | call.peer;
        Use& of_communicator = uses[collective.communicator];
        of_communicator.sends[ConnectionUseOf(call.expert)].insert(send);
        if (call.expert.relayed_for > 0) of_communicator.relayed.insert(send);
      }
    }
  }
  return uses;
}

class ConnectionChecker {
 public:
  ConnectionChecker(const ProtoCursor& scenario, const FabricGraph& graph,
                    const LoadedWorkload& workload, const NcclSettings& nccl,
                    const CommunicatorPlanners& planners, const NicSettings& nic,
                    Diagnostics& diagnostics)
      : graph_(graph),
        job_(workload.job),
        planners_(planners),
        required_(scenario, graph, nccl, nic, diagnostics) {}

  uint64_t Check() {
    const std::vector<Use> uses = UsesOf(job_);
    for (size_t id = 0; id < uses.size() && !required_.IsEnough(); ++id) {
      if (uses[id].collectives.empty() && uses[id].sends.empty() && !uses[id].all_to_all) continue;
      communicator_ = &job_.communicators[id];
      required_.SetCommunicator(*communicator_);
      CheckCommunicator(uses[id], *planners_[id]);
    }
    required_.ReportRest();
    return exchange_connections_;
  }

 private:
  void CheckCommunicator(const Use& use, const NcclPlanner& planner) {
    std::set<Algorithm> algorithms;
    for (const JobCollective* collective : use.collectives) {
      const auto choice = planner.Choose(*collective, StatedChoice(*collective));
      if (!choice || !algorithms.insert(choice->algorithm).second) continue;
      const auto schedule = planner.Plan(*collective, *choice);
      if (choice->algorithm == Algorithm::kDirect) {
        CheckAllPairs(planner, ConnectionUse::kExchange);
      } else {
        CheckPeers(planner, *schedule, choice->algorithm);
      }
    }
    if (algorithms.contains(Algorithm::kRing)) CheckRings(planner);
    if (algorithms.contains(Algorithm::kTree)) CheckTrees(planner);
    if (use.all_to_all) {
      CheckAllPairs(planner, ConnectionUse::kPointToPoint);
    } else {
      for (const auto& [of_sends, sends] : use.sends) CheckSends(planner, of_sends, sends);
      CheckRelayed(planner, use.relayed);
    }
  }

  void CheckRings(const NcclPlanner& planner) {
    const auto& rings = planner.channels().rings;
    for (uint32_t channel = 0; channel < rings.size(); ++channel) {
      const std::vector<uint32_t>& ring = rings[channel];
      for (size_t i = 0; i < ring.size(); ++i) {
        CheckConnection(planner, channel, RankIndex{ring[i]},
                        RankIndex{ring[(i + 1) % ring.size()]}, ConnectionUse::kRing);
      }
    }
  }

  void CheckTrees(const NcclPlanner& planner) {
    for (uint32_t channel = 0; channel < planner.trees().size(); ++channel) {
      const std::vector<TreePlace>& tree = planner.trees()[channel];
      for (RankIndex rank{0}; rank < tree.size(); ++rank) {
        if (tree[rank].up == kNoPeer) continue;
        const RankIndex up{tree[rank].up};
        CheckConnection(planner, channel, rank, up, ConnectionUse::kTree);
        CheckConnection(planner, channel, up, rank, ConnectionUse::kTree);
      }
    }
  }

  // Rings, trees and exchanges of all with all count as a whole; of all others, what a schedule's
  // lanes send to.
  void CheckPeers(const NcclPlanner& planner, const CollectiveSchedule& schedule,
                  Algorithm algorithm) {
    const uint32_t channels = std::min(schedule.channel_count(), ChannelsThatDiffer(algorithm));
    for (RankIndex rank{0}; rank < schedule.rank_count(); ++rank) {
      for (uint32_t channel = 0; channel < channels; ++channel) {
        if (schedule.BatchCount(rank, channel) == 0) continue;
        for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, 0); ++lane) {
          CheckLane(planner, channel, rank, schedule.PeersOf({rank, channel, 0, lane}).send_to);
        }
      }
    }
  }

  // Returns how many of the first channels show every connection that an algorithm's ranks open.
  // NVLSTree has one tree on even channels and one on odd ones.
  static uint32_t ChannelsThatDiffer(Algorithm algorithm) {
    switch (algorithm) {
      case Algorithm::kRing:
      case Algorithm::kTree:
      case Algorithm::kDirect:
        return 0;
      case Algorithm::kPat:
      case Algorithm::kHalvingDoubling:
        return 1;
      case Algorithm::kNvls:
      case Algorithm::kNvlsTree:
        return 2;
      default:
        return UINT32_MAX;
    }
  }

  void CheckLane(const NcclPlanner& planner, uint32_t channel, RankIndex rank,
                 const std::vector<LanePeer>& peers) {
    for (const LanePeer& peer : peers) {
      switch (peer.use) {
        case ConnectionUse::kSwitchOperand:
        case ConnectionUse::kSwitchResult:
          required_.RequireSharedNvSwitch(graph_.device(GpuOf(rank)).server);
          break;
        case ConnectionUse::kNetworkSum:
          // The NICs that the network adds up for, each with the first of its tree.
          if (&peer == &peers.front() && peer.rank != rank) {
            CheckConnection(planner, channel, rank, peer.rank, peer.use);
          }
          break;
        default:
          CheckConnection(planner, channel, rank, peer.rank, peer.use);
      }
    }
  }

  // Checks the connections of every rank to every other: within servers pair by pair; between them,
  // with relays, by the local index of the destination GPU, which alone determines the route.
  void CheckAllPairs(const NcclPlanner& planner, ConnectionUse use) {
    const std::vector<RankPlace>& ranks = planner.layout().ranks;
    exchange_connections_ += uint64_t{ranks.size()} * (ranks.size() - 1);
    for (const std::vector<RankIndex>& node : RanksByNode(planner.layout())) {
      for (const RankIndex from : node) {
        for (const RankIndex to : node) {
          if (required_.IsEnough()) return;
          if (from == to) continue;
          CheckConnection(planner, 0, from, to, use);
        }
      }
    }
    const bool may_relay = use == ConnectionUse::kPointToPoint;
    std::map<uint32_t, std::vector<RankIndex>> ranks_of_index;
    for (RankIndex rank{0}; rank < ranks.size(); ++rank) {
      ranks_of_index[may_relay ? ranks[rank].local_index : 0].push_back(rank);
    }
    for (const auto& [index, targets] : ranks_of_index) CheckAllTo(planner, targets, use);
  }

  // Checks the connections to these ranks, which others reach in the same way, from all ranks on
  // other servers.
  void CheckAllTo(const NcclPlanner& planner, const std::vector<RankIndex>& targets,
                  ConnectionUse use) {
    const std::vector<RankPlace>& ranks = planner.layout().ranks;
    const auto not_of = [&](uint32_t node) {
      return std::find_if(targets.begin(), targets.end(),
                          [&](RankIndex rank) { return ranks[rank].node != node; });
    };
    std::vector<DeviceId> injecting;
    for (RankIndex from{0}; from < ranks.size(); ++from) {
      const auto to = not_of(ranks[from].node);
      if (to == targets.end()) continue;
      const DeviceId source = GpuOf(from);
      const DeviceId sender = InjectingGpu(from, planner.RouteOf(0, from, *to, use));
      if (sender != source) required_.RequireNvlink(source, sender);
      injecting.push_back(sender);
    }
    std::sort(injecting.begin(), injecting.end());
    injecting.erase(std::unique(injecting.begin(), injecting.end()), injecting.end());
    std::erase_if(injecting, [&](DeviceId gpu) { return !required_.RequireNic(gpu); });
    if (injecting.empty()) return;
    std::vector<DeviceId> receiving;
    for (const RankIndex rank : targets) {
      if (required_.RequireNic(GpuOf(rank))) receiving.push_back(GpuOf(rank));
    }
    required_.RequirePaths(injecting, receiving, use);
  }

  // Kernels of experts take consecutive ranks to be one server's.
  void CheckRelayed(const NcclPlanner& planner, const std::unordered_set<uint64_t>& sends) {
    for (const uint64_t send : std::set(sends.begin(), sends.end())) {
      const RankPlace& from = planner.layout().ranks[send >> 32];
      const RankPlace& to = planner.layout().ranks[send & UINT32_MAX];
      if (from.node == to.node) continue;
      required_.Error(fmt::format(
          "the expert kernel sends from rank {} to rank {} over NVLink, but they are on servers {} "
          "and {} (expected servers of as many GPUs as the kernel's)",
          communicator_->ranks[send >> 32], communicator_->ranks[send & UINT32_MAX], from.server,
          to.server));
      return;
    }
  }

  void CheckSends(const NcclPlanner& planner, ConnectionUse use,
                  const std::unordered_set<uint64_t>& sends) {
    exchange_connections_ += sends.size();
    std::vector<uint64_t> in_order(sends.begin(), sends.end());
    std::sort(in_order.begin(), in_order.end());
    for (const uint64_t send : in_order) {
      CheckConnection(planner, 0, RankIndex{send >> 32}, RankIndex{send & UINT32_MAX}, use);
    }
  }

  // NICs do not send to themselves here: where GPUs share one, a kernel that writes to both by RDMA
  // would wait for ever.
  void CheckRemoteWrite(RankIndex from, RankIndex to) {
    const auto nic = graph_.NicOfGpu(GpuOf(from));
    if (shares_nic_ || !nic || nic != graph_.NicOfGpu(GpuOf(to))) return;
    shares_nic_ = true;
    required_.Error(fmt::format(
        "the expert kernel writes from rank {} to rank {} by RDMA, but both have {} "
        "(expected a NIC for each GPU, or kernel: NCCL)",
        communicator_->ranks[from], communicator_->ranks[to], graph_.device(*nic).name));
  }

  DeviceId GpuOf(RankIndex rank) const { return graph_.gpus()[communicator_->ranks[rank]]; }
  DeviceId InjectingGpu(RankIndex from, const ConnectionRoute& route) const {
    const GpuIndex gpu = railyard::GpuOf(communicator_->ranks[from]);
    return graph_.gpus()[graph_.GpuOfServer(gpu, route.sending_local_index)];
  }

  void CheckConnection(const NcclPlanner& planner, uint32_t channel, RankIndex from, RankIndex to,
                       ConnectionUse use) {
    if (required_.IsEnough()) return;
    if (use == ConnectionUse::kRemoteWrite) CheckRemoteWrite(from, to);
    const ConnectionRoute route = planner.RouteOf(channel, from, to, use);
    if (!route.network) {
      required_.RequireInServer(planner, from, to);
      return;
    }
    const DeviceId source = GpuOf(from);
    const DeviceId injecting = InjectingGpu(from, route);
    if (injecting != source) required_.RequireNvlink(source, injecting);
    required_.RequireNetwork(injecting, GpuOf(to), use);
  }

  const FabricGraph& graph_;
  const Job& job_;
  const CommunicatorPlanners& planners_;
  RequiredPaths required_;
  const TraceCommunicator* communicator_ = nullptr;  // that is looked at
  uint64_t exchange_connections_ = 0;
  bool shares_nic_ = false;  // an expert kernel's GPUs, which has been reported
};

}  // namespace

uint64_t CheckConnections(const ProtoCursor& scenario, const FabricGraph& graph,
                          const LoadedWorkload& workload, const NcclSettings& nccl,
                          const CommunicatorPlanners& planners, const NicSettings& nic,
                          Diagnostics& diagnostics) {
  return ConnectionChecker(scenario, graph, workload, nccl, planners, nic, diagnostics).Check();
}

}  // namespace railyard
