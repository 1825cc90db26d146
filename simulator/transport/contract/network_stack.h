// SPDX-License-Identifier: GPL-2.0-only
// Declares a network stack, which consists of all transports between the servers of a run. It
// provides the transport of the job's connections, that of background traffic, and the counters.
// Scenarios choose a stack by its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/contract/transport.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class FlowNetwork;
class LoadStoreTransport;
class NicDetours;
class QueueTransport;
struct NetworkStackSettings;

// Holds the counters of a network's transports since the start of the run.
struct StackCounters {
  uint64_t retransmitted_packets = 0;
  uint64_t timeouts = 0;
  uint64_t nacks = 0;
  uint64_t queue_pair_errors = 0;
  uint64_t ecn_marked = 0;  // data packets that arrived marked
  uint64_t cnp = 0;         // sent
  // Counts of messages that tolerate losses, and of the packets that they may lose.
  uint64_t tolerant_messages = 0;
  uint64_t dispensable_packets = 0;
  // Counts of packets and bytes that receivers went without.
  uint64_t missing_packets = 0;
  uint64_t missing_bytes = 0;

  static constexpr auto Fields() {
    using S = StackCounters;
    return FieldTable(
        "counters", field::Unrepeatable("retransmitted_packets", &S::retransmitted_packets),
        field::Unrepeatable("timeouts", &S::timeouts), field::Count("nacks", &S::nacks),
        field::Unrepeatable("queue_pair_errors", &S::queue_pair_errors),
        field::Count("ecn_marked", &S::ecn_marked), field::Count("cnp", &S::cnp),
        field::Count("tolerant_messages", &S::tolerant_messages),
        field::Count("dispensable_packets", &S::dispensable_packets),
        field::Unrepeatable("missing_packets", &S::missing_packets),
        field::Unrepeatable("missing_bytes", &S::missing_bytes));
  }

  void Add(const StackCounters& other) { CombineFields(*this, other, std::plus<>()); }
};

// Counts connection ends that took a NIC's port out of use, and those that put one back into use.
struct PortCounters {
  uint64_t failovers = 0;
  uint64_t recoveries = 0;

  static constexpr auto Fields() {
    return FieldTable("port counters", field::Unrepeatable("failovers", &PortCounters::failovers),
                      field::Unrepeatable("recoveries", &PortCounters::recoveries));
  }
};

// Provides the transports between the servers of a run.
class NetworkStack {
 public:
  virtual ~NetworkStack() = default;

  // Returns the transport of a job's connections between these two GPUs.
  virtual Transport& Between(GpuIndex source_gpu, GpuIndex destination_gpu) = 0;
  // Returns the transport of flows that no collective library opens, such as background traffic.
  virtual Transport& Plain() = 0;
  // Returns the stack's queue pairs, or null if it has none.
  virtual QueueTransport* queue_pairs() { return nullptr; }
  // Returns whether a connection between two GPUs can consist of one of these queue pairs. If so,
  // the traffic among a group of NICs can be replayed separately.
  virtual bool HasQueuePairConnections() const { return false; }
  // Returns the detours around failed NICs, or null if the stack has none.
  virtual NicDetours* detours() { return nullptr; }

  virtual StackCounters counters() const { return {}; }
  // Returns the payload of those flows of Plain() for which Transport::CountPayload() was called.
  virtual uint64_t counted_payload_bytes() const { return 0; }
  virtual PortCounters port_counters() const { return {}; }
  // Registers the stack as the sink of its packets (FabricNetwork::SetSinkOf).
  virtual void TakePackets(FabricNetwork& /*network*/) {}
  // Must be called when the fabric's routes have changed.
  virtual void OnRoutesChanged() = 0;
  // Returns all transports of the stack with their names, in the order in which snapshots visit
  // them.
  virtual std::vector<std::pair<std::string, Transport*>> transports() = 0;
};

// Names the objects that a stack uses. They must outlive the stack.
struct NetworkStackParts {
  const FabricGraph& graph;
  FabricNetwork& network;
  EcmpRouting& routing;
  LoadStoreTransport& load_store;
  ProxyThreads& proxies;
  FlowNetwork* flows = nullptr;  // carries messages in flow mode; null: they are packets
};

using NetworkStackFactory = std::function<std::unique_ptr<NetworkStack>(
    const NetworkStackParts&, const NetworkStackSettings&)>;

}  // namespace railyard
