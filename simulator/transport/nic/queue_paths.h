// SPDX-License-Identifier: GPL-2.0-only
// Chooses the paths of queue pairs: for each of a pair's two queues, that of its packets and that
// of their acknowledgements. Paths are chosen when a pair is opened and when routes have changed,
// never for a packet.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/contract/transport.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

// Names the ends of a queue pair, which both its queues share.
struct PairEnds {
  std::optional<PortPins> data_pins;  // the ports it is bound to, if any
  DeviceId source_gpu{0};
  DeviceId destination_gpu{0};
  DeviceId source_nic{0};
  DeviceId destination_nic{0};
  uint64_t entropy = 0;
};

// Returns the ends of a queue pair between the NICs of two GPUs, bound to no ports.
PairEnds EndsBetween(const FabricGraph& graph, GpuIndex source_gpu, GpuIndex destination_gpu,
                     uint64_t entropy);
// Returns a text such as "server1/nic3 -> server2/nic3".
std::string NamesOf(const FabricGraph& graph, const PairEnds& ends);
// Returns the links of paths that carry equal parts of one flow's payload.
std::vector<LinkShare> EvenSharesOf(const FabricNetwork& network, std::span<const PathRef> paths);

class QueuePaths {
 public:
  // Holds the paths of a queue.
  struct Ways {
    PathRef packets;
    PathRef acks;
  };
  // With `is_answered_by_host`, the host behind the receiving NIC acknowledges data, from memory to
  // memory. The references must outlive this object.
  QueuePaths(const FabricGraph& graph, FabricNetwork& network, const EcmpRouting& routing,
             bool is_answered_by_host)
      : graph_(graph),
        network_(network),
        routing_(routing),
        is_answered_by_host_(is_answered_by_host) {}

  // Returns the current paths of a pair's queue: of its data, or else of its grants. A path of
  // `last` that is still right is returned as it is; all others are added to the network.
  Ways Resolve(const PairEnds& ends, bool is_data, const Ways& last);
  // Must be called when routes have changed, before the next Resolve(). From then on a path that
  // this object has added before is found again.
  void OnRoutesChanged() { routes_have_changed_ = true; }
  // Returns a hash over the links of a path, which two paths over the same links share.
  uint64_t HashOf(PathRef path) const;

 private:
  // Describes a path that was resolved when routes had changed. Such paths are stored by a hash
  // over their links.
  struct LaterPath {
    PathRef path;
    std::optional<uint32_t> detour_hop;
  };

  // Names the ends of a path. `is_forward` is true for the direction of the data.
  struct Way {
    DeviceId from;
    DeviceId to;
    bool is_forward = true;
  };
  PathRef PathTo(const Way& way, const PairEnds& ends, PathRef last);
  PathRef FindOrAdd(const Path& path, std::optional<uint32_t> detour_hop);
  bool IsOver(PathRef known, const Path& path) const;

  const FabricGraph& graph_;
  FabricNetwork& network_;
  const EcmpRouting& routing_;
  std::unordered_multimap<uint64_t, LaterPath> later_paths_;
  bool is_answered_by_host_;
  bool routes_have_changed_ = false;
};

}  // namespace railyard
