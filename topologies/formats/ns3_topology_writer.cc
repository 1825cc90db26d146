// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/ns3_topology_writer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

namespace railyard {
namespace {

// Assigns devices to nodes of the file; a GPU and its NIC share one. Else holds the reason why the
// fabric has no such form.
class Nodes {
 public:
  explicit Nodes(const FabricGraph& fabric) : fabric_(fabric), node_(fabric.device_count()) {}

  std::string Number() {
    uint32_t next = 0;
    for (const DeviceId gpu : fabric_.gpus()) node_[gpu] = next++;
    for (const DeviceKind kind : {DeviceKind::kNvSwitch, DeviceKind::kSwitch}) {
      for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
        if (fabric_.device(id).kind != kind) continue;
        (kind == DeviceKind::kSwitch ? switches_ : nvswitches_).push_back(next);
        node_[id] = next++;
      }
    }
    count_ = next;
    return NumberNics();
  }

  uint32_t Of(DeviceId id) const { return node_[id]; }
  uint32_t count() const { return count_; }
  const std::vector<uint32_t>& nvswitches() const { return nvswitches_; }
  const std::vector<uint32_t>& switches() const { return switches_; }
  // Returns the delay that a NIC's HOST cables add to that of its network cables.
  int64_t HostDelay(DeviceId nic) const {
    const auto found = host_delay_ps_.find(nic);
    return found == host_delay_ps_.end() ? 0 : found->second;
  }
  // GPUs of every server, if it is the same number; in the order of servers. Else 0.
  uint32_t GpusPerServer() const {
    const size_t servers = fabric_.server_count();
    const size_t each = fabric_.gpus().size() / servers;
    for (size_t i = 0; i < fabric_.gpus().size(); ++i) {
      const Device& gpu = fabric_.device(fabric_.gpus()[i]);
      if (gpu.server != i / each) return 0;
    }
    return static_cast<uint32_t>(each);
  }

 private:
  std::string NumberNics() {
    std::vector<bool> has_nic(fabric_.device_count());
    for (DeviceId id{0}; id < fabric_.device_count(); ++id) {
      const DeviceKind kind = fabric_.device(id).kind;
      if (kind == DeviceKind::kPcieSwitch || kind == DeviceKind::kHostBridge) {
        return fmt::format("{} is a {}", fabric_.device(id).name, DeviceKindName(kind));
      }
      if (kind != DeviceKind::kNic) continue;
      std::optional<DeviceId> gpu;
      for (const auto& edge : boost::make_iterator_range(boost::out_edges(id, fabric_.graph()))) {
        if (fabric_.graph()[edge].tier != Tier::kHost) continue;
        if (gpu) return fmt::format("GPUs share {}", fabric_.device(id).name);
        gpu = static_cast<DeviceId>(boost::target(edge, fabric_.graph()));
        host_delay_ps_[id] = fabric_.graph()[edge].propagation_ps;
      }
      if (!gpu) return fmt::format("{} has no GPU", fabric_.device(id).name);
      if (has_nic[*gpu]) {
        return fmt::format("{} has several NICs", fabric_.device(*gpu).name);
      }
      has_nic[*gpu] = true;
      node_[id] = node_[*gpu];
    }
    return {};
  }

  const FabricGraph& fabric_;
  std::vector<uint32_t> node_;
  uint32_t count_ = 0;
  std::vector<uint32_t> nvswitches_;
  std::vector<uint32_t> switches_;
  std::unordered_map<DeviceId, int64_t> host_delay_ps_;
};

}  // namespace

std::string ToNs3Topology(const FabricGraph& fabric, std::string& text) {
  Nodes nodes(fabric);
  if (std::string why = nodes.Number(); !why.empty()) return why;
  const uint32_t gpus_per_server = nodes.GpusPerServer();
  if (gpus_per_server == 0) return "servers have different numbers of GPUs";
  std::string links;
  uint32_t count = 0;
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    if (link.tier == Tier::kHost) continue;
    const DeviceId a = fabric.link_source(cable.forward);
    const DeviceId b = fabric.link_target(cable.forward);
    links += fmt::format("{} {} {}bps {}ps 0\n", nodes.Of(a), nodes.Of(b), link.rate_bps,
                         link.propagation_ps + nodes.HostDelay(a) + nodes.HostDelay(b));
    ++count;
  }
  const bool is_simai = gpus_per_server > 1 || !nodes.nvswitches().empty();
  text = is_simai ? fmt::format("{} {} {} {} {} NONE\n", nodes.count(), gpus_per_server,
                                nodes.nvswitches().size(), nodes.switches().size(), count)
                  : fmt::format("{} {} {}\n", nodes.count(), nodes.switches().size(), count);
  for (const uint32_t id : nodes.nvswitches()) text += fmt::format("{} ", id);
  for (const uint32_t id : nodes.switches()) text += fmt::format("{} ", id);
  text += "\n" + links;
  return {};
}

}  // namespace railyard
