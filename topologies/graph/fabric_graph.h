// SPDX-License-Identifier: GPL-2.0-only
// Represents a fabric as a typed property graph (Boost.Graph): devices are vertices, and every
// cable is two directed edges. Generators and readers make it; routing and the simulator read it.
// It is the only record of the cabling.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/graph/cpu_vendor.h"
#include "topologies/graph/graph_ids.h"

namespace railyard {

// A host bridge is a CPU socket's root complex with its memory.
enum class DeviceKind : uint8_t { kGpu, kNvSwitch, kNic, kSwitch, kPcieSwitch, kHostBridge };

// Names the place of a link in the fabric; the generator sets it.
enum class Tier : uint8_t {
  kNvlink,
  kHost,
  kNicLeaf,
  kLeafSpine,
  kSpineCore,
  kDirect,
  kLocal,
  kGlobal,
};
inline constexpr int kTierCount = 8;
std::string_view TierName(Tier tier);              // "NVLINK", "HOST", "NIC_LEAF", …
std::string_view DeviceKindName(DeviceKind kind);  // "GPU", "NVSWITCH", "NIC", "SWITCH", …

struct Device {
  std::string name;  // "server1/gpu3", "server1/nvswitch0", "server1/nic3", "leaf3", "spine0"
  DeviceKind kind = DeviceKind::kSwitch;
  // The server and the device's index within it; kNone and -1 for switches outside servers.
  ServerIndex server = ServerIndex::kNone;
  int32_t local_index = -1;
  int64_t forwarding_latency_ps = 0;  // last bit in to first bit out, without queueing
  // Position of a switch in a torus, HyperX or other coordinate network; else empty.
  std::vector<uint16_t> coordinates{};
  // GPU only: ten times its CUDA compute capability, e.g. 86; 0 if unknown.
  uint32_t compute_capability = 0;
  // GPU only: true if other devices may read and write its memory over PCIe.
  bool peer_access = true;
  // GPU only: the maker of its server's CPU.
  CpuVendor cpu = CpuVendor::kUnknown;
};

// Describes one direction of a cable.
struct LinkProperties {
  std::string name;    // "server1/nic3>leaf3"; parallel links "leaf3>spine0#1", "#2", …
  uint32_t cable = 0;  // index into FabricGraph::cables()
  Tier tier = Tier::kHost;
  uint64_t rate_bps = 0;
  int64_t propagation_ps = 0;  // cable and FEC
  uint32_t lanes = 1;          // links of the bundle this edge stands for (NVLink: 5/4/4/5)
};

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Device, LinkProperties>;

// Joins both directions of one physical cable. It is named "A--B" after the two devices; faults use
// this name.
struct Cable {
  std::string name;   // "server1/nic3--leaf3"; parallel cables "leaf3--spine0#1", "#2", …
  LinkId forward{0};  // from the device named first
  LinkId backward{0};
};

struct CableSpec {
  Tier tier = Tier::kHost;
  uint64_t rate_bps = 0;
  int64_t propagation_ps = 0;
  uint32_t lanes = 1;
};

// Holds NVLink properties of a platform that are not part of the graph.
struct NvlinkProperties {
  uint32_t packet_payload_bytes = 4096;  // simulated packet
  // Payload share of the raw rate, in thousandths: NVLink cells carry headers and CRC. H100: 824,
  // as NCCL's 20.6 GB/s of 25 GB/s per link (src/graph/topo.h).
  uint32_t efficiency_per_mille = 824;
};

// Names the set of paths among which routing chooses. ECMP chooses among the equal-cost next hops
// of a switch.
enum class RoutingPolicy : uint8_t {
  kShortest,               // all shortest paths
  kDimensionOrder,         // of these, those that correct the lowest differing dimension first
  kUpDown,                 // up from the NICs' switches, then down to them, never up again
  kValiant,                // shortest paths to a randomly drawn switch, and from there on
  kValiantDimensionOrder,  // the same, each part in dimension order
};
inline constexpr int kRoutingPolicyCount = 5;
std::string_view RoutingPolicyName(RoutingPolicy policy);  // "SHORTEST", "DIMENSION_ORDER", …
// Returns true if each flow passes a randomly drawn switch (Valiant), so that a switch alone cannot
// choose the next hop.
bool IsValiant(RoutingPolicy policy);
bool IsInDimensionOrder(RoutingPolicy policy);

// Names the method that keeps pauses from waiting for each other in a cycle.
enum class DeadlockAvoidance : uint8_t {
  kRoutes,      // one lossless class: the routes themselves have no cycle
  kHopClasses,  // a packet takes the next lossless class at every switch (Merlin, Schweitzer 1980)
  kDateline,    // a packet takes the second class where it crosses a ring's wrap-around cable
  kLossy,       // no pauses
};
inline constexpr int kDeadlockAvoidanceCount = 4;
std::string JoinTiers(std::span<const Tier> tiers, std::string_view separator);  // "LOCAL+GLOBAL"
std::string_view DeadlockAvoidanceName(DeadlockAvoidance avoidance);  // "ROUTES", "HOP_CLASSES", …

// Holds the timetable of cables over optical circuit switches: the same configurations repeat
// forever, from time 0 on.
struct CircuitSchedule {
  uint32_t slots = 0;  // configurations
  int64_t slot_ps = 0;
  int64_t dark_ps = 0;   // from a slot's beginning until its new cables carry packets
  int64_t drain_ps = 0;  // before a slot's end, while routes avoid the cables that end with it
  // Slots by cable, ascending; cables without an entry are always connected.
  std::map<uint32_t, std::vector<uint32_t>> slots_of_cable{};

  bool IsThere(uint32_t cable, uint32_t slot) const;
};

// Invariants: names are unique; every device in a server has a (server, local_index) that is unique
// within its kind; GPUs are numbered 0.. in the order of creation, which is rank order for a job
// that fills the fabric. Look-ups take constant time, or time linear in the smaller degree of the
// devices they name. The graph can be moved but not copied, because edges are identified by their
// address.
class FabricGraph {
 public:
  DeviceId AddDevice(Device device);
  // Adds both directions, forward from `a` to `b`; returns the cable's index. A second cable
  // between the same two devices makes the first one "#1" and itself "#2".
  uint32_t AddCable(DeviceId a, DeviceId b, const CableSpec& spec);
  // Sets the rate of both directions. Precondition: the rate is not 0.
  void SetCableRate(uint32_t cable, uint64_t rate_bps);

  const Graph& graph() const { return *graph_; }
  const Device& device(DeviceId id) const { return (*graph_)[id]; }
  uint32_t device_count() const { return static_cast<uint32_t>(boost::num_vertices(*graph_)); }

  uint32_t link_count() const { return static_cast<uint32_t>(links_.size()); }
  const LinkProperties& link(LinkId id) const { return (*graph_)[links_[id]]; }
  DeviceId link_source(LinkId id) const;
  DeviceId link_target(LinkId id) const;
  LinkId link_of_edge(Graph::edge_descriptor edge) const;
  // Returns the other direction of the same cable.
  LinkId ReverseLink(LinkId id) const;

  const std::vector<Cable>& cables() const { return cables_; }
  std::optional<uint32_t> FindCable(std::string_view name) const;  // either end first
  std::optional<DeviceId> FindDevice(std::string_view name) const;

  const std::vector<DeviceId>& gpus() const { return gpus_; }  // by GpuIndex
  // Returns one more than the highest server number.
  bool IsInServer(DeviceId id) const { return device(id).server != ServerIndex::kNone; }
  uint32_t server_count() const { return static_cast<uint32_t>(server_nics_.size()); }
  // Returns the GPU with that local index on the same server as `gpu`, if the server has one.
  std::optional<GpuIndex> FindGpuOfServer(GpuIndex gpu, uint32_t local_index) const;
  // Precondition: the server has such a GPU.
  GpuIndex GpuOfServer(GpuIndex gpu, uint32_t local_index) const {
    return FindGpuOfServer(gpu, local_index).value();
  }
  // Returns whether no two of the GPUs are on the same server.
  bool AreOnSeparateServers(std::span<const GpuIndex> gpus) const;
  // Returns the NIC that a GPU uses by default: the NIC of its server with the same local index
  // modulo the number of NICs. If no HOST cable joins the two, it is the first NIC that a HOST
  // cable joins to the GPU; failing that, among the nearest NICs over PCIe, the one at the GPU's
  // local index modulo their number. nullopt if there is no such NIC.
  std::optional<DeviceId> NicOfGpu(DeviceId gpu) const;
  // Returns the shortest path over HOST links, PCIe switches and host bridges, the first in order
  // of creation among equals; empty if there is none or from == to.
  std::vector<LinkId> HostPath(DeviceId from, DeviceId to) const;
  // Returns the devices to which HostPath() leads.
  std::vector<DeviceId> HostNeighbours(DeviceId from) const;
  // Returns the host bridge nearest to a device over PCIe; nullopt in servers without host bridges.
  std::optional<DeviceId> HostBridgeOf(DeviceId device) const;
  // Returns the links from a NIC to the network, one per port, in the order of its cables.
  std::vector<LinkId> WiresOfNic(DeviceId nic) const;
  // Returns the NVSwitches cabled to both GPUs, in order; empty if they share no island.
  std::vector<DeviceId> SharedNvSwitches(DeviceId gpu_a, DeviceId gpu_b) const;
  // Returns the NVSwitches cabled to every one of two or more GPUs, in order.
  std::vector<DeviceId> SharedNvSwitches(std::span<const DeviceId> gpus) const;
  // Describes one NVLink path between two GPUs. NvlinkPaths() returns, in order, a path over each
  // NVSwitch cabled to both or, without such a switch, each NVLINK cable from one to the other; it
  // is empty if neither exists.
  struct NvlinkPath {
    std::vector<LinkId> links;  // from gpu_a to gpu_b: two, or one; as many in every path
    uint32_t lanes = 1;
  };
  std::vector<NvlinkPath> NvlinkPaths(DeviceId gpu_a, DeviceId gpu_b) const;
  // Returns NvlinkPaths() or, if that is empty, a path over one intermediate GPU that NVLINK cables
  // join to both: the path with the most lanes on its narrower hop; among these, with the most
  // lanes to gpu_b; among these, the first (ncclTopoSetPaths, src/graph/paths.cc, where such a path
  // is called NVB). The result is empty if there is no such GPU.
  std::vector<NvlinkPath> NvlinkRoutes(DeviceId gpu_a, DeviceId gpu_b) const;
  // Returns the link between two adjacent devices (the first of a bundle), or nullopt.
  std::optional<LinkId> FindLink(DeviceId from, DeviceId to) const;

  std::string name;
  NvlinkProperties nvlink;
  RoutingPolicy routing = RoutingPolicy::kShortest;
  DeadlockAvoidance deadlock_avoidance = DeadlockAvoidance::kRoutes;
  std::optional<CircuitSchedule> circuits;

 private:
  struct ParallelCables {
    uint32_t first = 0;  // index into cables_
    uint32_t count = 0;
  };

  void NameCable(uint32_t cable, uint32_t number_in_bundle);
  // Returns each device reachable over PCIe from `from`, itself included and the nearest first,
  // with the last link of the path to it.
  std::vector<std::pair<DeviceId, LinkId>> HostReach(DeviceId from) const;

  // The graph is behind a pointer because edge descriptors point into it and Boost's graph moves by
  // copying.
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::vector<Graph::edge_descriptor> links_;
  std::vector<Cable> cables_;
  std::vector<DeviceId> gpus_;
  std::vector<std::vector<DeviceId>> server_nics_;  // by server, in the order of local_index
  std::vector<std::vector<GpuIndex>> server_gpus_;  // likewise
  std::unordered_map<std::string, DeviceId> device_by_name_;
  std::unordered_map<std::string, uint32_t> cable_by_name_;
  std::unordered_map<uint64_t, ParallelCables> cables_between_;  // by the pair of devices
};

}  // namespace railyard
