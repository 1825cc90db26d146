// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/network_flow.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct FlowEdge {
  int64_t capacity = 0;
  int64_t residual = 0;
  FlowTraits::edge_descriptor reverse{};
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowEdge>;

constexpr uint32_t kSource = 0;
constexpr uint32_t kSink = 1;
constexpr int kMostRounds = 100;

// Collects the capacities between nodes, of which Build makes a graph for max-flow. Several edges
// from one node to another count as one of their sum.
class CapacityNetwork {
 public:
  explicit CapacityNetwork(uint32_t nodes) : nodes_(nodes) {}

  void Add(uint32_t from, uint32_t to, uint64_t capacity) {
    if (from != to) capacities_[uint64_t{from} << 32 | to] += static_cast<int64_t>(capacity);
  }

  uint32_t nodes() const { return nodes_; }

  // Returns each node's class in the coarsest partition in which all nodes of a class have the same
  // capacity to, and from, every class; source and sink are separate classes. Classes are compared
  // by 64-bit hashes, which collide once in 10^10 fabrics. A chain of switches would take as many
  // rounds as it is long: then every node is a class.
  std::vector<uint32_t> Classes() const {
    std::vector<uint32_t> class_of(nodes_, 2);
    class_of[kSource] = 0;
    class_of[kSink] = 1;
    int rounds = 0;
    for (size_t classes = 3, before = 0; classes != before;) {
      if (++rounds > kMostRounds) {
        std::iota(class_of.begin(), class_of.end(), 0u);
        return class_of;
      }
      before = classes;
      std::vector<uint64_t> signature(nodes_);
      for (const auto& [ends, capacity] : capacities_) {
        const auto from = static_cast<uint32_t>(ends >> 32);
        const auto to = static_cast<uint32_t>(ends);
        // Sums of capacities by class would do as well; sums of hashes of the links are finer where
        // bundles differ, and as good.
        const auto rate = static_cast<uint64_t>(capacity);
        signature[from] += Mix64(Mix64(rate) ^ (2 * uint64_t{class_of[to]}));
        signature[to] += Mix64(Mix64(rate) ^ (2 * uint64_t{class_of[from]} + 1));
      }
      std::unordered_map<uint64_t, uint32_t> number;
      for (uint32_t node = 0; node < nodes_; ++node) {
        const uint64_t key = Mix64(signature[node] ^ Mix64(class_of[node]));
        class_of[node] =
            number.try_emplace(key, static_cast<uint32_t>(number.size())).first->second;
      }
      classes = number.size();
    }
    return class_of;
  }

  // The network of classes; source and sink must be alone in theirs, which get their numbers.
  CapacityNetwork Contracted(const std::vector<uint32_t>& class_of, uint32_t classes) const {
    // Numbered from source and sink on, as those are nodes 0 and 1 and were looked at first.
    CapacityNetwork contracted(classes);
    for (const auto& [ends, capacity] : capacities_) {
      contracted.Add(class_of[ends >> 32], class_of[static_cast<uint32_t>(ends)],
                     static_cast<uint64_t>(capacity));
    }
    return contracted;
  }

  FlowGraph Build() const {
    FlowGraph graph(nodes_);
    for (const auto& [ends, capacity] : capacities_) {
      const auto from = static_cast<uint32_t>(ends >> 32);
      const auto to = static_cast<uint32_t>(ends);
      // Push-relabel takes back flow only by edges without capacity: both directions of a pair
      // cannot be each other's reverse.
      const auto edge = boost::add_edge(from, to, FlowEdge{.capacity = capacity}, graph).first;
      const auto reverse = boost::add_edge(to, from, FlowEdge{}, graph).first;
      graph[edge].reverse = reverse;
      graph[reverse].reverse = edge;
    }
    return graph;
  }

 private:
  uint32_t nodes_;
  std::map<uint64_t, int64_t> capacities_;  // by (from, to)
};

int64_t PushRelabel(FlowGraph& graph) {
  return boost::push_relabel_max_flow(graph, kSource, kSink, boost::get(&FlowEdge::capacity, graph),
                                      boost::get(&FlowEdge::residual, graph),
                                      boost::get(&FlowEdge::reverse, graph),
                                      boost::get(boost::vertex_index, graph));
}

// A NIC with one port and GPUs of one node passes the minimum of both sides, so it needs no
// separate node. Returns the port, or nothing.
std::optional<LinkId> OnlyPort(const FabricGraph& fabric, DeviceId nic,
                               const std::vector<uint32_t>& node_of) {
  std::optional<LinkId> port;
  std::optional<uint32_t> owner;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(nic, fabric.graph()))) {
    const auto neighbour = static_cast<DeviceId>(boost::target(edge, fabric.graph()));
    if (fabric.device(neighbour).kind == DeviceKind::kGpu) {
      if (owner && *owner != node_of[neighbour]) return std::nullopt;
      owner = node_of[neighbour];
    } else {
      if (port || fabric.device(neighbour).kind != DeviceKind::kSwitch) return std::nullopt;
      port = fabric.link_of_edge(edge);
    }
  }
  return owner ? port : std::nullopt;
}

uint64_t SumOfHostLinks(const FabricGraph& fabric, DeviceId nic) {
  uint64_t sum = 0;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(nic, fabric.graph()))) {
    if (fabric.graph()[edge].tier == Tier::kHost) sum += fabric.graph()[edge].rate_bps;
  }
  return sum;
}

}  // namespace

MaxFlow MaxFlowBetween(const FabricGraph& fabric, const std::vector<ServerIndex>& from_servers,
                       const std::vector<ServerIndex>& to_servers) {
  // All GPUs of the sending servers are the source, for each may send without limit; the same for
  // the sink. So what is inside these servers needs no nodes.
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<uint32_t> node_of_server(fabric.server_count(), kNone);
  for (const ServerIndex server : from_servers) node_of_server[server] = kSource;
  for (const ServerIndex server : to_servers) {
    SIM_CHECK(node_of_server[server] == kNone, "a server on both sides of a flow");
    node_of_server[server] = kSink;
  }
  uint32_t nodes = 2;
  std::vector<uint32_t> node_of(fabric.device_count());
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    const Device& device = fabric.device(id);
    const bool is_inside = device.kind == DeviceKind::kGpu || device.kind == DeviceKind::kNvSwitch;
    const uint32_t of_server = is_inside ? node_of_server[device.server] : kNone;
    node_of[id] = of_server == kNone ? nodes++ : of_server;
  }
  CapacityNetwork network(nodes);
  std::vector<bool> is_contracted(fabric.device_count());
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind != DeviceKind::kNic) continue;
    const auto port = OnlyPort(fabric, id, node_of);
    if (!port) continue;
    is_contracted[id] = true;
    const uint64_t rate = std::min(fabric.link(*port).rate_bps, SumOfHostLinks(fabric, id));
    const auto owner = static_cast<DeviceId>(boost::target(
        *std::find_if(boost::out_edges(id, fabric.graph()).first,
                      boost::out_edges(id, fabric.graph()).second,
                      [&](const auto& edge) { return fabric.graph()[edge].tier == Tier::kHost; }),
        fabric.graph()));
    network.Add(node_of[owner], node_of[fabric.link_target(*port)], rate);
    network.Add(node_of[fabric.link_target(*port)], node_of[owner], rate);
  }
  for (LinkId link{0}; link < fabric.link_count(); ++link) {
    const DeviceId source = fabric.link_source(link);
    const DeviceId target = fabric.link_target(link);
    if (is_contracted[source] || is_contracted[target]) continue;
    network.Add(node_of[source], node_of[target], fabric.link(link).rate_bps);
  }
  const std::vector<uint32_t> class_of = network.Classes();
  const uint32_t classes = *std::max_element(class_of.begin(), class_of.end()) + 1;
  FlowGraph graph = network.Contracted(class_of, classes).Build();
  return {.bps = static_cast<uint64_t>(PushRelabel(graph)),
          .nodes = network.nodes(),
          .classes = classes};
}

uint64_t MaxFlowBps(const FabricGraph& fabric, const std::vector<ServerIndex>& from_servers,
                    const std::vector<ServerIndex>& to_servers) {
  return MaxFlowBetween(fabric, from_servers, to_servers).bps;
}

uint64_t MaxFlowBetweenGpusBps(const FabricGraph& fabric, const std::vector<DeviceId>& from,
                               const std::vector<DeviceId>& to) {
  std::vector<uint32_t> node_of(fabric.device_count());
  std::iota(node_of.begin(), node_of.end(), 2u);
  for (const DeviceId gpu : from) node_of[gpu] = kSource;
  for (const DeviceId gpu : to) node_of[gpu] = kSink;
  CapacityNetwork network(fabric.device_count() + 2);
  for (LinkId link{0}; link < fabric.link_count(); ++link) {
    network.Add(node_of[fabric.link_source(link)], node_of[fabric.link_target(link)],
                fabric.link(link).rate_bps);
  }
  FlowGraph graph = network.Build();
  return static_cast<uint64_t>(PushRelabel(graph));
}

uint64_t BisectionBps(const FabricGraph& fabric) { return Bisection(fabric).bps; }

MaxFlow Bisection(const FabricGraph& fabric) {
  const auto half_of = [](auto items) {
    const auto middle = items.begin() + static_cast<ptrdiff_t>(items.size() / 2);
    return std::pair(decltype(items)(items.begin(), middle), decltype(items)(middle, items.end()));
  };
  if (fabric.server_count() == 1) {
    const auto [first, second] = half_of(fabric.gpus());
    const auto nodes = fabric.device_count();
    return {.bps = first.empty() ? 0 : MaxFlowBetweenGpusBps(fabric, first, second),
            .nodes = nodes,
            .classes = nodes};
  }
  std::vector<ServerIndex> servers(fabric.server_count());
  std::iota(servers.begin(), servers.end(), ServerIndex{0});
  const auto [first, second] = half_of(servers);
  return MaxFlowBetween(fabric, first, second);
}

uint32_t EdgeConnectivity(const FabricGraph& fabric, DeviceId gpu_a, DeviceId gpu_b) {
  SIM_CHECK(gpu_a != gpu_b, "a GPU cannot be parted from itself");
  std::vector<uint32_t> node_of(fabric.device_count());
  uint32_t nodes = 2;
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    node_of[id] = id == gpu_a ? kSource : id == gpu_b ? kSink : nodes++;
  }
  CapacityNetwork network(nodes);
  for (LinkId link{0}; link < fabric.link_count(); ++link) {
    network.Add(node_of[fabric.link_source(link)], node_of[fabric.link_target(link)], 1);
  }
  FlowGraph graph = network.Build();
  // Few augmenting paths: as many as the lesser GPU has cables.
  return static_cast<uint32_t>(boost::edmonds_karp_max_flow(
      graph, kSource, kSink,
      boost::capacity_map(boost::get(&FlowEdge::capacity, graph))
          .residual_capacity_map(boost::get(&FlowEdge::residual, graph))
          .reverse_edge_map(boost::get(&FlowEdge::reverse, graph))));
}

}  // namespace railyard
