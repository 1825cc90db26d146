// SPDX-License-Identifier: GPL-2.0-only
// Defines the parts of the network that connections make up: groups of NICs, traffic within
// servers, and the identities by which equal parts are recognized.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/transport/contract/network_stack.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes a group of GPUs, each with its own NIC, and the network connections among them of some
// communicators. `at` is set if all these connections cross the same switch.
struct NicGroup {
  std::vector<GpuIndex> gpus;
  std::vector<ConnectionId> connections{};  // in an order common to corresponding rails
  std::vector<ConnectionId> others{};       // among the GPUs, of other communicators
  std::vector<LinkId> links{};              // in the order of the connections, each once
  std::optional<DeviceId> at{};             // the only switch, if there is one
  uint64_t identity = 0;                    // hash of all that orders events and routes
  uint64_t version = 0;                     // ConnectionTable::network_version() when made
};

class NicGroups {
 public:
  // All references must outlive this.
  NicGroups(const FabricGraph& graph, const ConnectionTable& table,
            const LoadStoreTransport& load_store, NetworkStack& stack)
      : graph_(graph), table_(table), load_store_(load_store), stack_(stack) {}

  // Returns the NIC group of `gpus` and the communicators' connections. `identity_of_gpu` is a hash
  // of the other state that affects events at a GPU.
  NicGroup GroupOf(std::span<const GpuIndex> gpus, std::span<const CommunicatorIndex> communicators,
                   const std::function<uint64_t(GpuIndex gpu)>& identity_of_gpu) const;
  // Returns the part of the group that is of one of its GPUs: its NIC, and its connections in both
  // directions. It has no identity.
  NicGroup Around(const NicGroup& group, GpuIndex gpu) const;
  // Returns the GPUs to or from which a GPU has connections of the group, each once.
  std::vector<GpuIndex> PeersOf(const NicGroup& group, GpuIndex gpu) const;
  // Returns a hash of the connections and NVLink flows on which these GPUs send within their
  // servers; it does not depend on which servers they are.
  uint64_t IdentityOfGpus(std::span<const GpuIndex> gpus) const;
  // Returns all network connections among the GPUs and those on which they send within their
  // servers.
  std::vector<ConnectionId> AllAmong(std::span<const GpuIndex> gpus) const;

 private:
  // Returns the network connections between two of the GPUs, in the order of their ties.
  std::vector<ConnectionId> AmongOnNetwork(std::span<const GpuIndex> gpus) const;
  std::vector<LinkId> AllLinksOf(std::span<const FlowId> queue_pairs) const;
  std::optional<DeviceId> SwitchOf(std::span<const LinkId> links) const;
  uint64_t IdentityOf(const NicGroup& group,
                      const std::function<uint64_t(GpuIndex gpu)>& identity_of_gpu) const;

  const FabricGraph& graph_;
  const ConnectionTable& table_;
  const LoadStoreTransport& load_store_;
  NetworkStack& stack_;
};

}  // namespace railyard
