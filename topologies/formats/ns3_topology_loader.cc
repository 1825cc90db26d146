// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/ns3_topology_loader.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topologies/formats/line_findings.h"
#include "topologies/formats/ns3_topology_reader.h"
#include "topologies/formats/topology_message_loader.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

using Part = TopologyMessage::Part;

class Ns3TopologyConverter {
 public:
  Ns3TopologyConverter(Ns3Topology topology, const std::string& path, Diagnostics& diagnostics)
      : topology_(std::move(topology)),
        diagnostics_(diagnostics),
        findings_(path, diagnostics),
        message_(path) {}

  std::optional<FabricGraph> Convert() {
    PlaceHosts();
    PlaceNvSwitches();
    if (findings_.HasErrors()) return std::nullopt;
    AddDevices();
    AddLinks();
    return message_.Load(diagnostics_);
  }

 private:
  Ns3NodeKind KindOf(uint32_t node) const { return topology_.nodes[node].kind; }

  // Hosts are GPUs in the order of their ids.
  void PlaceHosts() {
    FindLevels();
    gpu_.resize(node_count_);
    uint32_t next = 0;
    for (uint32_t id = 0; id < node_count_; ++id) {
      if (KindOf(id) == Ns3NodeKind::kHost) gpu_[id] = next++;
    }
    has_nic_.resize(next);
    host_rate_bps_.resize(next);
    for (const Ns3Link& link : topology_.links) {
      if (TierOf(link) == Tier::kNvlink) continue;
      for (const uint32_t end : {link.source, link.target}) {
        if (KindOf(end) != Ns3NodeKind::kHost) continue;
        has_nic_[gpu_[end]] = true;
        host_rate_bps_[gpu_[end]] =
            std::min(kMaxLinkRateBps, host_rate_bps_[gpu_[end]] + link.rate_bps);
      }
    }
  }

  uint32_t ServerOf(uint32_t gpu) const { return gpu / topology_.gpus_per_server; }

  // Assigns each NVSwitch to the server of the GPUs that are cabled to it.
  void PlaceNvSwitches() {
    constexpr uint32_t kNone = UINT32_MAX;
    server_of_nvswitch_.assign(node_count_, kNone);
    std::unordered_map<uint32_t, uint32_t> count_of_server;
    for (const Ns3Link& link : topology_.links) {
      for (const auto& [nvswitch, other] :
           {std::pair(link.source, link.target), std::pair(link.target, link.source)}) {
        if (KindOf(nvswitch) != Ns3NodeKind::kNvSwitch) continue;
        if (KindOf(other) != Ns3NodeKind::kHost) {
          findings_.Error(link.line, 1,
                          fmt::format("NVSwitch {} is cabled to node {} (expected GPUs only)",
                                      nvswitch, other));
          continue;
        }
        const uint32_t server = ServerOf(gpu_[other]);
        if (server_of_nvswitch_[nvswitch] == kNone) {
          server_of_nvswitch_[nvswitch] = server;
          index_of_nvswitch_[nvswitch] = count_of_server[server]++;
        } else if (server_of_nvswitch_[nvswitch] != server) {
          findings_.Error(
              link.line, 1,
              fmt::format("NVSwitch {} joins GPUs of servers {} and {} (expected GPUs of one)",
                          nvswitch, server_of_nvswitch_[nvswitch], server));
        }
      }
    }
    for (uint32_t id = 0; id < node_count_; ++id) {
      if (KindOf(id) == Ns3NodeKind::kNvSwitch && server_of_nvswitch_[id] == kNone) {
        findings_.Error(topology_.nodes[id].line, 1,
                        fmt::format("NVSwitch {} has no link (expected at least one)", id));
      }
    }
  }

  // Cables between a switch and the nearest one with a host.
  void FindLevels() {
    level_.assign(node_count_, UINT32_MAX);
    std::vector<std::vector<uint32_t>> neighbours(node_count_);
    std::vector<uint32_t> queue;
    for (const Ns3Link& link : topology_.links) {
      const bool is_switch[] = {KindOf(link.source) == Ns3NodeKind::kSwitch,
                                KindOf(link.target) == Ns3NodeKind::kSwitch};
      if (is_switch[0] && is_switch[1]) {
        neighbours[link.source].push_back(link.target);
        neighbours[link.target].push_back(link.source);
      } else if (is_switch[0] || is_switch[1]) {
        const uint32_t at = is_switch[0] ? link.source : link.target;
        if (level_[at] == 0) continue;
        level_[at] = 0;
        queue.push_back(at);
      }
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const uint32_t next : neighbours[queue[i]]) {
        if (level_[next] != UINT32_MAX) continue;
        level_[next] = level_[queue[i]] + 1;
        queue.push_back(next);
      }
    }
  }

  Tier TierOf(const Ns3Link& link) const {
    const Ns3NodeKind a = KindOf(link.source);
    const Ns3NodeKind b = KindOf(link.target);
    if (a == Ns3NodeKind::kNvSwitch || b == Ns3NodeKind::kNvSwitch) return Tier::kNvlink;
    if (a == Ns3NodeKind::kHost && b == Ns3NodeKind::kHost) {
      const bool is_inside =
          topology_.is_simai && ServerOf(gpu_[link.source]) == ServerOf(gpu_[link.target]);
      return is_inside ? Tier::kNvlink : Tier::kDirect;
    }
    if (a == Ns3NodeKind::kHost || b == Ns3NodeKind::kHost) return Tier::kNicLeaf;
    const auto [low, high] = std::minmax(level_[link.source], level_[link.target]);
    if (low == high) return Tier::kDirect;
    return low == 0 ? Tier::kLeafSpine : Tier::kSpineCore;
  }

  std::string NameOf(uint32_t id) const {
    if (KindOf(id) == Ns3NodeKind::kSwitch) return fmt::format("switch{}", id);
    if (KindOf(id) == Ns3NodeKind::kNvSwitch) {
      return fmt::format("server{}/nvswitch{}", server_of_nvswitch_[id], index_of_nvswitch_.at(id));
    }
    return fmt::format("server{}/gpu{}", ServerOf(gpu_[id]), gpu_[id] % topology_.gpus_per_server);
  }

  std::string NicNameOf(uint32_t id) const {
    return fmt::format("server{}/nic{}", ServerOf(gpu_[id]), gpu_[id] % topology_.gpus_per_server);
  }

  void AddDevice(int line, const std::string& name, const char* kind, uint32_t server,
                 uint32_t index) {
    message_.StartDevice(line);
    message_.Set(Part::kDevice, "name", name);
    message_.Set(Part::kDevice, "kind", kind);
    if (std::string_view(kind) == "SWITCH") return;
    message_.Set(Part::kDevice, "server", fmt::format("{}", server));
    message_.Set(Part::kDevice, "local_index", fmt::format("{}", index));
  }

  void AddCable(int line, const std::string& from, const std::string& to, Tier tier,
                uint64_t rate_bps, int64_t delay_ps) {
    message_.StartLink(line);
    message_.Set(Part::kLink, "from", from);
    message_.Set(Part::kLink, "to", to);
    message_.Set(Part::kLink, "tier", std::string(TierName(tier)));
    message_.Set(Part::kLink, "rate", fmt::format("{}bps", rate_bps));
    message_.Set(Part::kLink, "delay", fmt::format("{}ps", delay_ps));
  }

  void AddDevices() {
    for (uint32_t id = 0; id < node_count_; ++id) {
      const int line = topology_.nodes[id].line;
      if (KindOf(id) == Ns3NodeKind::kSwitch) {
        AddDevice(line, NameOf(id), "SWITCH", 0, 0);
      } else if (KindOf(id) == Ns3NodeKind::kNvSwitch) {
        AddDevice(line, NameOf(id), "NVSWITCH", server_of_nvswitch_[id], index_of_nvswitch_.at(id));
      } else {
        const uint32_t server = ServerOf(gpu_[id]);
        const uint32_t index = gpu_[id] % topology_.gpus_per_server;
        AddDevice(line, NameOf(id), "GPU", server, index);
        if (has_nic_[gpu_[id]]) AddDevice(line, NicNameOf(id), "NIC", server, index);
      }
    }
  }

  void AddLinks() {
    for (uint32_t id = 0; id < node_count_; ++id) {
      if (KindOf(id) != Ns3NodeKind::kHost || !has_nic_[gpu_[id]]) continue;
      AddCable(topology_.nodes[id].line, NameOf(id), NicNameOf(id), Tier::kHost,
               host_rate_bps_[gpu_[id]], 0);
    }
    for (const Ns3Link& link : topology_.links) {
      const Tier tier = TierOf(link);
      const auto end = [&](uint32_t id) {
        return KindOf(id) == Ns3NodeKind::kHost && tier != Tier::kNvlink ? NicNameOf(id)
                                                                         : NameOf(id);
      };
      AddCable(link.line, end(link.source), end(link.target), tier, link.rate_bps, link.delay_ps);
    }
  }

  const Ns3Topology topology_;
  const uint32_t node_count_ = static_cast<uint32_t>(topology_.nodes.size());
  Diagnostics& diagnostics_;
  LineFindings findings_;
  TopologyMessage message_;
  std::vector<uint32_t> gpu_;  // by node, as all that follows: number of the GPU that a host is
  std::vector<uint32_t> server_of_nvswitch_;
  std::unordered_map<uint32_t, uint32_t> index_of_nvswitch_;
  std::vector<uint32_t> level_;
  std::vector<bool> has_nic_;  // by GPU
  std::vector<uint64_t> host_rate_bps_;
};

}  // namespace

std::optional<FabricGraph> LoadNs3Topology(const std::string& path, Diagnostics& diagnostics) {
  std::optional<Ns3Topology> topology = ReadNs3Topology(path, diagnostics);
  if (!topology) return std::nullopt;
  return Ns3TopologyConverter(*std::move(topology), path, diagnostics).Convert();
}

}  // namespace railyard
