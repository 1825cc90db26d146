// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/connection_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include "simulator/diagnostics/check.h"
#include "topologies/measures/nic_reach.h"
#include "topologies/routing/routing.h"
#include "workloads/experts/expert_kernels.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

// A path's length is kept in eight bits (simulator/fabric/fabric_network.h).
constexpr size_t kPathLinksMax = 255;
// To and from memory, and between each NIC and a switch.
constexpr size_t kSwitchedPathLinks = 4;

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
  std::set<std::tuple<uint32_t, CollectiveKind, uint64_t, Algorithm, Protocol>> seen;
  for (const JobCollective& collective : job.collectives) {
    if (collective.kind == CollectiveKind::kAllToAll) {
      uses[collective.communicator].all_to_all = true;
    }
    if (collective.is_p2p() || collective.bytes == 0) continue;
    if (seen.emplace(collective.communicator, collective.kind, collective.bytes,
                     collective.logged_algorithm, collective.logged_protocol)
            .second) {
      uses[collective.communicator].collectives.push_back(&collective);
    }
  }
  for (uint32_t rank = 0; rank < job.rank_count; ++rank) {
    for (const JobOperation& operation : job.operations[rank]) {
      if (!operation.is_p2p) continue;
      const JobCollective& collective = job.collectives[job.CollectiveOf(rank, operation)];
      if (uses[collective.communicator].all_to_all) continue;
      const RankIndex from = job.CommunicatorRank(collective.communicator, rank);
      for (uint32_t i = 0; i < operation.p2p_count; ++i) {
        const P2pCall& call = job.p2p_calls[operation.p2p_first + i];
        if (!call.is_send || call.peer == from) continue;
        const uint64_t send = uint64_t{from} << 32 | call.peer;
        const ExpertKernel kernel = call.expert.kernel;
        Use& of_communicator = uses[collective.communicator];
        of_communicator
            .sends[kernel == ExpertKernel::kNone ? ConnectionUse::kPointToPoint
                                                 : NetworkUseOf(kernel)]
            .insert(send);
        if (call.expert.relayed_for > 0) of_communicator.relayed.insert(send);
      }
    }
  }
  return uses;
}

// Returns the field of `fabric { }` that states the cabling.
const char* SourceOf(const ProtoCursor& fabric) {
  const google::protobuf::Message& message = fabric.message();
  const auto* source = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName("source"));
  SIM_CHECK(source != nullptr, "a fabric without a source");
  return source->name().c_str();
}

class ConnectionChecker {
 public:
  ConnectionChecker(const ProtoCursor& scenario, const FabricGraph& graph,
                    const LoadedWorkload& workload, const NcclSettings& nccl,
                    const CommunicatorPlanners& planners, const NicSettings& nic,
                    Diagnostics& diagnostics)
      : fabric_(scenario.Child("fabric")),
        source_(SourceOf(fabric_)),
        graph_(graph),
        job_(workload.job),
        nccl_(nccl),
        planners_(planners),
        link_aggregation_(nic.link_aggregation),
        diagnostics_(diagnostics),
        routing_(graph, 0),
        reach_(graph, routing_, SwitchHopsMax(graph)) {
    for (const DeviceId gpu : graph.gpus()) {
      const Device& device = graph.device(gpu);
      gpu_at_[{device.server, static_cast<uint32_t>(device.local_index)}] = gpu;
    }
  }

  uint64_t Check() {
    const std::vector<Use> uses = UsesOf(job_);
    for (size_t id = 0; id < uses.size() && !IsEnough(); ++id) {
      if (uses[id].collectives.empty() && uses[id].sends.empty() && !uses[id].all_to_all) continue;
      communicator_ = &job_.communicators[id];
      CheckCommunicator(uses[id], *planners_[id]);
    }
    if (unjoined_ > kUnjoinedReportedMax) {
      fabric_.Error(diagnostics_, source_,
                    fmt::format("{}{} more like these", IsEnough() ? "at least " : "",
                                unjoined_ - kUnjoinedReportedMax));
    }
    return exchange_connections_;
  }

 private:
  // Returns the most links between switches that a path between two NICs may have, whatever their
  // GPUs.
  static uint32_t SwitchHopsMax(const FabricGraph& graph) {
    constexpr size_t kNicWires = 2;
    size_t host_links_max = 0;
    for (const DeviceId gpu : graph.gpus()) {
      const auto nic = graph.NicOfGpu(gpu);
      if (nic) host_links_max = std::max(host_links_max, graph.HostPath(gpu, *nic).size());
    }
    const size_t ends = kNicWires + 2 * host_links_max;
    return static_cast<uint32_t>(kPathLinksMax - std::min(ends, kPathLinksMax));
  }

  bool IsEnough() const { return unjoined_ >= kUnjoinedCountedMax; }

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

  // How many of the first channels show every connection that an algorithm's ranks open. NVLSTree
  // has one tree on even channels and one on odd ones.
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
          RequireSharedNvSwitch(rank);
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
    for (const std::vector<uint32_t>& node : RanksByNode(planner.layout())) {
      for (const uint32_t from : node) {
        for (const uint32_t to : node) {
          if (IsEnough()) return;
          if (from == to) continue;
          CheckConnection(planner, 0, RankIndex{from}, RankIndex{to}, use);
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
      if (sender != source && joined_by_nvlink_.insert({source, sender}).second) {
        RequireNvlink(source, sender);
      }
      injecting.push_back(sender);
    }
    std::sort(injecting.begin(), injecting.end());
    injecting.erase(std::unique(injecting.begin(), injecting.end()), injecting.end());
    std::erase_if(injecting, [&](DeviceId gpu) { return !RequireNic(gpu); });
    if (injecting.empty()) return;
    std::vector<DeviceId> receiving;
    for (const RankIndex rank : targets) {
      if (RequireNic(GpuOf(rank))) receiving.push_back(GpuOf(rank));
    }
    RequirePaths(injecting, receiving, use);
  }

  // Between all of them that are on different servers.
  void RequirePaths(const std::vector<DeviceId>& from, const std::vector<DeviceId>& to,
                    ConnectionUse use) {
    std::vector<DeviceId> nics;
    for (const DeviceId gpu : from) nics.push_back(*graph_.NicOfGpu(gpu));
    for (const DeviceId gpu : to) nics.push_back(*graph_.NicOfGpu(gpu));
    if (!RequireShortDetours() || reach_.AllJoined(nics)) return;
    for (size_t i = 0; i < from.size(); ++i) {
      for (size_t j = 0; j < to.size() && !IsEnough(); ++j) {
        if (graph_.device(from[i]).server == graph_.device(to[j]).server) continue;
        if (!reach_.Joined(nics[i], nics[from.size() + j])) RequirePath(from[i], to[j], use);
      }
    }
  }

  // Kernels of experts take consecutive ranks to be one server's.
  void CheckRelayed(const NcclPlanner& planner, const std::unordered_set<uint64_t>& sends) {
    for (const uint64_t send : std::set(sends.begin(), sends.end())) {
      const RankPlace& from = planner.layout().ranks[send >> 32];
      const RankPlace& to = planner.layout().ranks[send & UINT32_MAX];
      if (from.node == to.node) continue;
      fabric_.Error(diagnostics_, source_,
                    fmt::format("the expert kernel sends from rank {} to rank {} over NVLink, but "
                                "they are on servers {} and {} (expected servers of as many GPUs "
                                "as the kernel's)",
                                communicator_->ranks[send >> 32],
                                communicator_->ranks[send & UINT32_MAX], from.server, to.server));
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

  DeviceId GpuOf(RankIndex rank) const { return graph_.gpus()[communicator_->ranks[rank]]; }
  DeviceId InjectingGpu(RankIndex from, const ConnectionRoute& route) const {
    return gpu_at_.at({graph_.device(GpuOf(from)).server, route.sending_local_index});
  }

  void CheckConnection(const NcclPlanner& planner, uint32_t channel, RankIndex from, RankIndex to,
                       ConnectionUse use) {
    if (IsEnough()) return;
    const ConnectionRoute route = planner.RouteOf(channel, from, to, use);
    const DeviceId source = GpuOf(from);
    const DeviceId target = GpuOf(to);
    if (!route.network) {
      if (joined_in_server_.insert({source, target}).second) RequireInServer(planner, from, to);
      return;
    }
    const DeviceId injecting = InjectingGpu(from, route);
    if (injecting != source && joined_by_nvlink_.insert({source, injecting}).second) {
      RequireNvlink(source, injecting);
    }
    const bool has_nics = RequireNic(injecting) && RequireNic(target);
    if (!has_nics || (use != ConnectionUse::kNetworkSum && HasAllPaths())) return;
    if (RequireShortDetours() && joined_by_paths_.insert({injecting, target}).second) {
      RequirePath(injecting, target, use);
    }
  }

  // Whether there are paths between all GPUs of the fabric.
  bool HasAllPaths() {
    if (!has_all_paths_) {
      std::vector<DeviceId> nics;
      for (const DeviceId gpu : graph_.gpus()) {
        if (const auto nic = graph_.NicOfGpu(gpu)) nics.push_back(*nic);
      }
      has_all_paths_ = RequireShortDetours() && reach_.AllJoined(nics);
    }
    return *has_all_paths_;
  }

  // Whether a packet that goes to a switch first, wherever that is, has a path of kPathLinksMax.
  bool RequireShortDetours() {
    if (!IsValiant(graph_.routing)) return true;
    if (!has_short_detours_) {
      const uint32_t hops_max = reach_.switch_hops_max();
      const uint32_t hops = 2 * reach_.LongestHops(hops_max / 2);
      has_short_detours_ = hops <= hops_max;
      if (!*has_short_detours_) {
        fabric_.Error(
            diagnostics_, source_,
            fmt::format("paths over a switch that flows draw have up to {} links (expected at most "
                        "{}, or valiant: false)",
                        hops + kPathLinksMax - hops_max, kPathLinksMax));
      }
    }
    return *has_short_detours_;
  }

  // NCCL_P2P_LEVEL=NVL leaves out what goes over a GPU between the two.
  void RequireNvlink(DeviceId a, DeviceId b) {
    const bool may_relay = nccl_.p2p_level.value_or(PathType::kSys) > PathType::kNvl;
    if (!(may_relay ? graph_.NvlinkRoutes(a, b) : graph_.NvlinkPaths(a, b)).empty()) return;
    Report(
        a, b,
        fmt::format("no NVLink joins {} and {}, and communicator {} does (expected an NVSWITCH "
                    "cabled to both, or an NVLINK cable between them or from both to a third GPU)",
                    NameOf(a), NameOf(b), Quote(communicator_->name)));
  }

  void RequireInServer(const NcclPlanner& planner, RankIndex from, RankIndex to) {
    const DeviceId a = graph_.gpus()[communicator_->ranks[from]];
    const DeviceId b = graph_.gpus()[communicator_->ranks[to]];
    const bool has_bridges = graph_.HostBridgeOf(a) && !graph_.HostPath(a, b).empty();
    const bool is_nvlink = !graph_.NvlinkRoutes(a, b).empty();
    switch (planner.TransportBetween(from, to)) {
      case LocalTransport::kNvlink:
        if (!has_bridges) RequireNvlink(a, b);
        return;
      case LocalTransport::kPeerToPeer:
      case LocalTransport::kSharedMemory:
        return;
      case LocalTransport::kNone:
        break;
    }
    if (!has_bridges && !is_nvlink) {
      RequireNvlink(a, b);
    } else {
      Report(
          a, b,
          fmt::format("nccl.P2P_LEVEL, P2P_DISABLE and SHM_DISABLE leave {} and {} no way in their "
                      "server, and communicator {} needs one (expected {})",
                      NameOf(a), NameOf(b), Quote(communicator_->name),
                      has_bridges ? "nccl.SHM_DISABLE: false; NCCL's detour over NICs is not "
                                    "modelled"
                                  : "nccl.P2P_DISABLE: false, or a platform with PCIe between "
                                    "GPUs"));
    }
  }

  // NVSwitch reduction and multicast require a switch that all of the communicator's GPUs on the
  // rank's server are cabled to.
  void RequireSharedNvSwitch(RankIndex rank) {
    const int32_t server = graph_.device(graph_.gpus()[communicator_->ranks[rank]]).server;
    if (!islands_.emplace(communicator_, server).second) return;
    std::vector<DeviceId> gpus;
    for (const uint32_t gpu : communicator_->ranks) {
      if (graph_.device(graph_.gpus()[gpu]).server == server) gpus.push_back(graph_.gpus()[gpu]);
    }
    if (!graph_.SharedNvSwitches(gpus).empty()) return;
    Report(
        gpus.front(), gpus.back(),
        fmt::format("no NVSWITCH is cabled to all {} GPUs that communicator {} has in the server "
                    "of {}, and NVLS needs one (expected such an NVSWITCH, or "
                    "nccl.NVLS_ENABLE: false)",
                    gpus.size(), Quote(communicator_->name), NameOf(gpus.front())));
  }

  bool RequireNic(DeviceId gpu) {
    const auto nic = graph_.NicOfGpu(gpu);
    if (!nic) {
      Report(gpu, gpu,
             fmt::format("{} has no NIC, and communicator {} reaches other servers by it (expected "
                         "one that is cabled to it)",
                         NameOf(gpu), Quote(communicator_->name)));
      return false;
    }
    if (!graph_.WiresOfNic(*nic).empty()) return true;
    Report(*nic, *nic,
           fmt::format("{} has no cable to the network, and communicator {} reaches other servers "
                       "by it (expected a link to a SWITCH)",
                       NameOf(*nic), Quote(communicator_->name)));
    return false;
  }

  void RequirePath(DeviceId from, DeviceId to, ConnectionUse use) {
    const Path path = routing_.Resolve(from, to, 0);
    const std::string ends =
        fmt::format("{} and {}", NameOf(*graph_.NicOfGpu(from)), NameOf(*graph_.NicOfGpu(to)));
    if (path.empty()) {
      Report(from, to,
             fmt::format("no path joins {}, and communicator {} needs one (expected SWITCHes "
                         "between them{})",
                         ends, Quote(communicator_->name), Remedy(from, to, use)));
    } else if (use == ConnectionUse::kNetworkSum && path.size() < kSwitchedPathLinks) {
      Report(
          from, to,
          fmt::format("no switch is between {} to add up for communicator {} (expected SWITCHes, "
                      "or nccl.COLLNET_ENABLE: 0)",
                      ends, Quote(communicator_->name)));
    } else if (use == ConnectionUse::kNetworkSum &&
               graph_.HostPath(from, *graph_.NicOfGpu(from)).size() > 1) {
      Report(
          from, to,
          fmt::format("{} and its NIC meet over a PCIe switch or host bridge, from which sums by "
                      "the network are not modelled (expected nccl.COLLNET_ENABLE: 0)",
                      NameOf(from)));
    } else if (path.size() > kPathLinksMax) {
      Report(from, to,
             fmt::format("the shortest path of {} has {} links (expected at most {})", ends,
                         path.size(), kPathLinksMax));
    } else if (!link_aggregation_) {
      RequirePathsOfPorts(from, to, ends);
    }
  }

  // If ports are devices of their own, each port connects to the port of the same number.
  void RequirePathsOfPorts(DeviceId from, DeviceId to, const std::string& ends) {
    const std::vector<LinkId> first = graph_.WiresOfNic(*graph_.NicOfGpu(from));
    const std::vector<LinkId> last = graph_.WiresOfNic(*graph_.NicOfGpu(to));
    for (size_t device = 0; device < std::max(first.size(), last.size()); ++device) {
      const PortPins pins = {.first = first[device % first.size()],
                             .last = graph_.ReverseLink(last[device % last.size()])};
      if (!routing_.Resolve(from, to, 0, pins).empty()) continue;
      Report(from, to,
             fmt::format("no path joins ports {} of {}, and communicator {} needs one (expected "
                         "SWITCHes between them, or nic.link_aggregation: true)",
                         device, ends, Quote(communicator_->name)));
    }
  }

  // The setting that keeps such a connection on its rail, where there is one.
  std::string_view Remedy(DeviceId from, DeviceId to, ConnectionUse use) const {
    if (graph_.device(from).local_index == graph_.device(to).local_index) return "";
    if (use == ConnectionUse::kPointToPoint)
      return nccl_.pxn_disable ? ", or nccl.PXN_DISABLE: false" : "";
    if (use == ConnectionUse::kExchange) return ", or workload.algorithm: RING";
    return use == ConnectionUse::kRing && nccl_.cross_nic != 0 ? ", or nccl.CROSS_NIC: 0" : "";
  }

  void Report(DeviceId a, DeviceId b, std::string what) {
    if (!reported_.insert(std::minmax(a, b)).second) return;
    if (++unjoined_ <= kUnjoinedReportedMax) {
      fabric_.Error(diagnostics_, source_, std::move(what));
    }
  }

  const std::string& NameOf(DeviceId device) const { return graph_.device(device).name; }

  const ProtoCursor fabric_;
  const char* const source_;
  const FabricGraph& graph_;
  const Job& job_;
  const NcclSettings& nccl_;
  const CommunicatorPlanners& planners_;
  const bool link_aggregation_;
  Diagnostics& diagnostics_;
  const EcmpRouting routing_;
  NicReach reach_;
  std::map<std::pair<int32_t, uint32_t>, DeviceId> gpu_at_;         // by server and local index
  const TraceCommunicator* communicator_ = nullptr;                 // that is looked at
  std::set<std::pair<const TraceCommunicator*, int32_t>> islands_;  // with a server, looked at
  // The pairs that have been examined, by the GPUs at both ends.
  std::set<std::pair<DeviceId, DeviceId>> joined_in_server_;
  std::set<std::pair<DeviceId, DeviceId>> joined_by_nvlink_;
  std::set<std::pair<DeviceId, DeviceId>> joined_by_paths_;
  std::optional<bool> has_all_paths_;
  std::optional<bool> has_short_detours_;
  std::set<std::pair<DeviceId, DeviceId>> reported_;
  size_t unjoined_ = 0;
  uint64_t exchange_connections_ = 0;
};

}  // namespace

uint64_t CheckConnections(const ProtoCursor& scenario, const FabricGraph& graph,
                          const LoadedWorkload& workload, const NcclSettings& nccl,
                          const CommunicatorPlanners& planners, const NicSettings& nic,
                          Diagnostics& diagnostics) {
  return ConnectionChecker(scenario, graph, workload, nccl, planners, nic, diagnostics).Check();
}

}  // namespace railyard
