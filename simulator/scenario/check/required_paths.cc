// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/required_paths.h"

#include <algorithm>

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include "simulator/diagnostics/check.h"
#include "workloads/layout/gpu_of_rank.h"

namespace railyard {
namespace {

// Returns the field of `fabric { }` that states the cabling.
const char* SourceOf(const ProtoCursor& fabric) {
  const google::protobuf::Message& message = fabric.message();
  const auto* source = message.GetReflection()->GetOneofFieldDescriptor(
      message, message.GetDescriptor()->FindOneofByName("source"));
  SIM_CHECK(source != nullptr, "a fabric without a source");
  return source->name().c_str();
}

// A path's length is kept in eight bits (simulator/fabric/fabric_network.h).
constexpr size_t kPathLinksMax = 255;
// To and from memory, and between each NIC and a switch.
constexpr size_t kSwitchedPathLinks = 4;

// Returns the most links between switches that a path between two NICs may have, whatever their
// GPUs.
uint32_t SwitchHopsMax(const FabricGraph& graph) {
  constexpr size_t kNicWires = 2;
  size_t host_links_max = 0;
  for (const DeviceId gpu : graph.gpus()) {
    const auto nic = graph.NicOfGpu(gpu);
    if (nic) host_links_max = std::max(host_links_max, graph.HostPath(gpu, *nic).size());
  }
  const size_t ends = kNicWires + 2 * host_links_max;
  return static_cast<uint32_t>(kPathLinksMax - std::min(ends, kPathLinksMax));
}

}  // namespace

RequiredPaths::RequiredPaths(const ProtoCursor& scenario, const FabricGraph& graph,
                             const NcclSettings& nccl, const NicSettings& nic,
                             Diagnostics& diagnostics)
    : fabric_(scenario.Child("fabric")),
      source_(SourceOf(fabric_)),
      graph_(graph),
      nccl_(nccl),
      link_aggregation_(nic.link_aggregation),
      diagnostics_(diagnostics),
      routing_(graph, 0),
      reach_(graph, routing_, SwitchHopsMax(graph)) {}

void RequiredPaths::ReportRest() {
  if (unjoined_ <= kUnjoinedReportedMax) return;
  Error(fmt::format("{}{} more like these", IsEnough() ? "at least " : "",
                    unjoined_ - kUnjoinedReportedMax));
}

// Returns whether there are paths between all GPUs of the fabric.
bool RequiredPaths::HasAllPaths() {
  if (!has_all_paths_) {
    std::vector<DeviceId> nics;
    for (const DeviceId gpu : graph_.gpus()) {
      if (const auto nic = graph_.NicOfGpu(gpu)) nics.push_back(*nic);
    }
    has_all_paths_ = RequireShortDetours() && reach_.AllJoined(nics);
  }
  return *has_all_paths_;
}

// Returns whether a packet that goes to a switch first, wherever that is, has a path of
// kPathLinksMax.
bool RequiredPaths::RequireShortDetours() {
  if (!IsValiant(graph_.routing)) return true;
  if (!has_short_detours_) {
    const uint32_t hops_max = reach_.switch_hops_max();
    const uint32_t hops = 2 * reach_.LongestHops(hops_max / 2);
    has_short_detours_ = hops <= hops_max;
    if (!*has_short_detours_) {
      Error(
          fmt::format("paths over a switch that flows draw have up to {} links (expected at most "
                      "{}, or valiant: false)",
                      hops + kPathLinksMax - hops_max, kPathLinksMax));
    }
  }
  return *has_short_detours_;
}

void RequiredPaths::RequirePaths(const std::vector<DeviceId>& from, const std::vector<DeviceId>& to,
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

// NCCL_P2P_LEVEL=NVL leaves out what goes over a GPU between the two.
void RequiredPaths::RequireNvlink(DeviceId a, DeviceId b) {
  if (!joined_by_nvlink_.insert({a, b}).second) return;
  const bool may_relay = nccl_.p2p_level.value_or(PathType::kSys) > PathType::kNvl;
  if (!(may_relay ? graph_.NvlinkRoutes(a, b) : graph_.NvlinkPaths(a, b)).empty()) return;
  Report(a, b,
         fmt::format("no NVLink joins {} and {}, and communicator {} does (expected an NVSWITCH "
                     "cabled to both, or an NVLINK cable between them or from both to a third GPU)",
                     NameOf(a), NameOf(b), Quote(communicator_->name)));
}

void RequiredPaths::RequireInServer(const NcclPlanner& planner, RankIndex from, RankIndex to) {
  const DeviceId a = graph_.gpus()[GpuOf(communicator_->ranks[from])];
  const DeviceId b = graph_.gpus()[GpuOf(communicator_->ranks[to])];
  if (!joined_in_server_.insert({a, b}).second) return;
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

void RequiredPaths::RequireSharedNvSwitch(ServerIndex server) {
  if (!islands_.emplace(communicator_, server).second) return;
  std::vector<DeviceId> gpus;
  for (const GlobalRank rank : communicator_->ranks) {
    const DeviceId gpu = graph_.gpus()[GpuOf(rank)];
    if (graph_.device(gpu).server == server) gpus.push_back(gpu);
  }
  if (!graph_.SharedNvSwitches(gpus).empty()) return;
  Report(gpus.front(), gpus.back(),
         fmt::format("no NVSWITCH is cabled to all {} GPUs that communicator {} has in the server "
                     "of {}, and NVLS needs one (expected such an NVSWITCH, or "
                     "nccl.NVLS_ENABLE: false)",
                     gpus.size(), Quote(communicator_->name), NameOf(gpus.front())));
}

bool RequiredPaths::RequireNic(DeviceId gpu) {
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

void RequiredPaths::RequireNetwork(DeviceId from, DeviceId to, ConnectionUse use) {
  const bool has_nics = RequireNic(from) && RequireNic(to);
  if (!has_nics || (use != ConnectionUse::kNetworkSum && HasAllPaths())) return;
  if (RequireShortDetours() && joined_by_paths_.insert({from, to}).second) {
    RequirePath(from, to, use);
  }
}

void RequiredPaths::RequirePath(DeviceId from, DeviceId to, ConnectionUse use) {
  const Path path = routing_.Resolve(from, to, 0);
  const std::string ends =
      fmt::format("{} and {}", NameOf(*graph_.NicOfGpu(from)), NameOf(*graph_.NicOfGpu(to)));
  if (path.empty()) {
    Report(from, to,
           fmt::format("no path joins {}, and communicator {} needs one (expected SWITCHes "
                       "between them{})",
                       ends, Quote(communicator_->name), Remedy(from, to, use)));
  } else if (use == ConnectionUse::kNetworkSum && path.size() < kSwitchedPathLinks) {
    Report(from, to,
           fmt::format("no switch is between {} to add up for communicator {} (expected SWITCHes, "
                       "or nccl.COLLNET_ENABLE: 0)",
                       ends, Quote(communicator_->name)));
  } else if (use == ConnectionUse::kNetworkSum &&
             graph_.HostPath(from, *graph_.NicOfGpu(from)).size() > 1) {
    Report(from, to,
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

// If ports are separate devices, each port connects to the port of the same number.
void RequiredPaths::RequirePathsOfPorts(DeviceId from, DeviceId to, const std::string& ends) {
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

// Returns the setting that keeps such a connection on its rail, where there is one.
std::string_view RequiredPaths::Remedy(DeviceId from, DeviceId to, ConnectionUse use) const {
  if (graph_.device(from).local_index == graph_.device(to).local_index) return "";
  if (use == ConnectionUse::kPointToPoint)
    return nccl_.pxn_disable ? ", or nccl.PXN_DISABLE: false" : "";
  if (use == ConnectionUse::kExchange) return ", or workload.algorithm: RING";
  return use == ConnectionUse::kRing && nccl_.cross_nic != 0 ? ", or nccl.CROSS_NIC: 0" : "";
}

void RequiredPaths::Report(DeviceId a, DeviceId b, std::string what) {
  if (!reported_.insert(std::minmax(a, b)).second) return;
  if (++unjoined_ <= kUnjoinedReportedMax) {
    Error(std::move(what));
  }
}

}  // namespace railyard
