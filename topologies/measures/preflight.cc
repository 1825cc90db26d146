// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/preflight.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topologies/routing/deadlock.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {
namespace {

constexpr size_t kMostNames = 4;

std::string Listed(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kMostNames);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

class Checker {
 public:
  Checker(const FabricGraph& fabric, const FabricMeasures& measures)
      : fabric_(fabric), measures_(measures), undirected_(fabric.device_count()) {
    for (const Cable& cable : fabric.cables()) {
      const LinkId link = cable.forward;
      boost::add_edge(fabric.link_source(link), fabric.link_target(link), undirected_);
    }
  }

  std::vector<PreflightFinding> Check() && {
    CheckReachable();
    CheckDeadlock();
    CheckRails();
    CheckNvSwitches();
    CheckBundles();
    CheckOversubscription();
    CheckSinglePoints();
    CheckRelays();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const auto& a, const auto& b) { return a.severity < b.severity; });
    return std::move(findings_);
  }

 private:
  using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

  void Add(PreflightSeverity severity, const char* code, std::string what) {
    findings_.push_back({severity, code, std::move(what)});
  }

  // Checks that GPUs reach each other over devices that forward, GPUs included.
  void CheckReachable() {
    std::vector<uint32_t> part(fabric_.device_count());
    boost::connected_components(undirected_, part.data());
    std::map<uint32_t, std::pair<DeviceId, size_t>> gpus_of_part;
    for (const DeviceId gpu : fabric_.gpus()) {
      ++gpus_of_part.try_emplace(part[gpu], gpu, 0).first->second.second;
    }
    if (gpus_of_part.size() < 2) return;
    const DeviceId a = fabric_.gpus().front();
    const DeviceId b =
        std::find_if(gpus_of_part.begin(), gpus_of_part.end(), [&](const auto& entry) {
          return entry.first != part[a];
        })->second.first;
    Add(PreflightSeverity::kError, "UNREACHABLE",
        fmt::format("the GPUs fall into {} parts that nothing joins; {} does not reach {}",
                    gpus_of_part.size(), fabric_.device(a).name, fabric_.device(b).name));
  }

  void CheckDeadlock() {
    const DeadlockReport report = FindDeadlock(fabric_);
    const std::string sampled =
        report.is_sampled ? fmt::format(" (routes to {} switches looked at)", report.destinations)
                          : std::string();
    if (!report.cycle.empty()) {
      Add(PreflightSeverity::kError, "PFC_DEADLOCK",
          fmt::format("pauses can wait for each other in a circle: {} > {}{}",
                      fmt::join(report.cycle, " > "), report.cycle.front(), sampled));
    }
    if (report.classes > LosslessClasses::kMax) {
      Add(PreflightSeverity::kError, "PFC_DEADLOCK",
          fmt::format("routes of {} hops need as many lossless classes, and PFC has {}{}",
                      report.classes, LosslessClasses::kMax, sampled));
    } else if (report.classes != 1) {
      Add(PreflightSeverity::kInfo, "LOSSLESS_CLASSES",
          report.classes == 0
              ? std::string("no lossless class: nothing pauses, and full buffers drop")
              : fmt::format("{} lossless classes keep pauses from waiting in a circle ({}){}",
                            report.classes, DeadlockAvoidanceName(fabric_.deadlock_avoidance),
                            sampled));
    }
  }

  // A server without a NIC that servers with as many GPUs have, and NICs that hang nowhere.
  void CheckRails() {
    std::vector<uint32_t> gpus(fabric_.server_count());
    std::vector<std::set<int32_t>> rails(fabric_.server_count());
    std::vector<std::string> uncabled;
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      const Device& device = fabric_.device(id);
      if (device.kind == DeviceKind::kGpu) ++gpus[device.server];
      if (device.kind != DeviceKind::kNic) continue;
      bool is_cabled = false;
      for (const auto& edge : boost::make_iterator_range(boost::out_edges(id, fabric_.graph()))) {
        is_cabled |= fabric_.graph()[edge].tier != Tier::kHost;
      }
      if (is_cabled) {
        rails[device.server].insert(device.local_index);
      } else {
        uncabled.push_back(device.name);
      }
    }
    if (!uncabled.empty()) {
      Add(PreflightSeverity::kWarning, "MISSING_RAIL",
          fmt::format("NICs without a cable to the network: {}", Listed(uncabled)));
    }
    std::map<uint32_t, std::set<int32_t>> rails_of_kind;
    for (ServerIndex server{0}; server < fabric_.server_count(); ++server) {
      rails_of_kind[gpus[server]].insert(rails[server].begin(), rails[server].end());
    }
    std::vector<std::string> missing;
    for (ServerIndex server{0}; server < fabric_.server_count(); ++server) {
      for (const int32_t rail : rails_of_kind[gpus[server]]) {
        if (!rails[server].contains(rail))
          missing.push_back(fmt::format("server{} rail {}", server, rail));
      }
    }
    if (!missing.empty()) {
      Add(PreflightSeverity::kWarning, "MISSING_RAIL",
          fmt::format("servers lack a rail that others with as many GPUs have: {}",
                      Listed(missing)));
    }
  }

  // Multicast and sums in NVSwitches (NVLS) are of GPUs that one NVSwitch reaches.
  void CheckNvSwitches() {
    std::vector<std::vector<DeviceId>> gpus(fabric_.server_count());
    std::vector<bool> has_nvswitch(fabric_.server_count());
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      const Device& device = fabric_.device(id);
      if (device.kind == DeviceKind::kGpu) gpus[device.server].push_back(id);
      if (device.kind == DeviceKind::kNvSwitch) has_nvswitch[device.server] = true;
    }
    std::vector<std::string> servers;
    for (size_t server = 0; server < gpus.size(); ++server) {
      if (!has_nvswitch[server] || gpus[server].size() < 2) continue;
      if (fabric_.SharedNvSwitches(gpus[server]).empty()) {
        servers.push_back(fmt::format("server{}", server));
      }
    }
    if (servers.empty()) return;
    Add(PreflightSeverity::kWarning, "NO_COMMON_NVSWITCH",
        fmt::format("no NVSwitch is cabled to all GPUs of its server, and NVLS needs one "
                    "(nccl.NVLS_ENABLE: false runs without): {}",
                    Listed(servers)));
  }

  void CheckBundles() {
    std::map<std::pair<DeviceId, DeviceId>, std::set<std::pair<uint64_t, Tier>>> kinds;
    for (const Cable& cable : fabric_.cables()) {
      const LinkProperties& link = fabric_.link(cable.forward);
      kinds[std::minmax(fabric_.link_source(cable.forward), fabric_.link_target(cable.forward))]
          .insert({link.rate_bps, link.tier});
    }
    std::vector<std::string> unequal;
    for (const auto& [ends, of_bundle] : kinds) {
      if (of_bundle.size() < 2) continue;
      unequal.push_back(
          fmt::format("{}--{}", fabric_.device(ends.first).name, fabric_.device(ends.second).name));
    }
    if (!unequal.empty()) {
      Add(PreflightSeverity::kWarning, "UNEQUAL_BUNDLE",
          fmt::format("parallel cables of different rates, over which ECMP spreads evenly: {}",
                      Listed(unequal)));
    }
  }

  void CheckOversubscription() {
    for (const Oversubscription& rung : measures_.oversubscription) {
      if (rung.worst <= 1.0 + 1e-9) continue;
      Add(PreflightSeverity::kWarning, "OVERSUBSCRIBED",
          fmt::format("{} takes {:.3g} times as much from {} as it passes on to {}",
                      rung.worst_switch, rung.worst, TierName(rung.lower),
                      JoinTiers(rung.uppers, " and ")));
    }
  }

  // Finds devices other than GPUs whose loss separates GPUs: the rest of the fabric falls apart
  // into the branches of a depth-first search that lead back to nothing before the device, and the
  // remainder.
  void CheckSinglePoints() {
    std::vector<Visit> visits(fabric_.device_count());
    std::map<DeviceKind, std::vector<std::string>> names;
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      if (visits[id].number == 0) Search(id, visits);
    }
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      const Device& device = fabric_.device(id);
      const Visit& visit = visits[id];
      // A side without GPUs is, for instance, a spine that hangs on one cable.
      const uint32_t rest = visits[visit.root].gpus - visit.gpus_independent;
      const uint32_t sides = visit.sides + (rest > 0 ? 1 : 0);
      if (device.kind != DeviceKind::kGpu && sides > 1) names[device.kind].push_back(device.name);
    }
    for (const auto& [kind, of_kind] : names) {
      Add(PreflightSeverity::kWarning, "SINGLE_POINT_OF_FAILURE",
          fmt::format("devices of kind {} whose loss parts GPUs: {}: {}", DeviceKindName(kind),
                      of_kind.size(), Listed(of_kind)));
    }
  }

  // State of a device in the depth-first search (Hopcroft and Tarjan: "Algorithm 447", 1973).
  struct Visit {
    uint32_t number = 0;    // order of the visits, from 1; 0: not visited
    uint32_t earliest = 0;  // visit that its branch leads back to by one cable
    DeviceId root{0};
    uint32_t gpus = 0;              // of its branch, itself included
    uint32_t gpus_independent = 0;  // of those in branches that only it joins to the rest
    uint32_t sides = 0;             // such branches that have GPUs
  };

  void Search(DeviceId root, std::vector<Visit>& visits) {
    using Edges = boost::graph_traits<Undirected>::out_edge_iterator;
    struct Step {
      DeviceId at{0};
      Edges next;
      Edges end;
    };
    std::vector<Step> path;
    const auto enter = [&](DeviceId at) {
      visits[at] = {.number = ++visited_, .earliest = visited_, .root = root};
      if (fabric_.device(at).kind == DeviceKind::kGpu) visits[at].gpus = 1;
      const auto [begin, end] = boost::out_edges(at, undirected_);
      path.push_back({at, begin, end});
    };
    enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      Visit& visit = visits[step.at];
      if (step.next != step.end) {
        const auto neighbour = static_cast<DeviceId>(boost::target(*step.next++, undirected_));
        if (visits[neighbour].number == 0) {
          enter(neighbour);
        } else {
          visit.earliest = std::min(visit.earliest, visits[neighbour].number);
        }
        continue;
      }
      path.pop_back();
      if (path.empty()) break;
      Visit& before = visits[path.back().at];
      before.earliest = std::min(before.earliest, visit.earliest);
      before.gpus += visit.gpus;
      if (visit.earliest < before.number) continue;
      before.gpus_independent += visit.gpus;
      if (visit.gpus > 0) ++before.sides;
    }
  }

  void CheckRelays() {
    if (measures_.path_pairs == 0 || measures_.paths_min > 0) return;
    Add(PreflightSeverity::kInfo, "RELAYED_PAIRS",
        "NICs of different rails or planes are not joined: what crosses them takes NVLink inside a "
        "server (NCCL: CROSS_NIC=0 and PXN)");
  }

  const FabricGraph& fabric_;
  const FabricMeasures& measures_;
  Undirected undirected_;
  uint32_t visited_ = 0;  // devices
  std::vector<PreflightFinding> findings_;
};

}  // namespace

std::string_view PreflightSeverityName(PreflightSeverity severity) {
  static constexpr std::array<std::string_view, 3> kNames = {"error", "warning", "info"};
  return kNames[static_cast<size_t>(severity)];
}

std::vector<PreflightFinding> Preflight(const FabricGraph& fabric, const FabricMeasures& measures) {
  return Checker(fabric, measures).Check();
}

}  // namespace railyard
