// SPDX-License-Identifier: GPL-2.0-only
// The transports between servers of a run, as one: what opens a job's connections, what background
// traffic uses, what was counted. A stack has a name, by which scenarios choose it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/nic_settings.h"
#include "simulator/transport/tcp/net_socket_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class LoadStoreTransport;
class NicDetours;
class QueueTransport;

// What a network's transports have counted since the run began.
struct StackCounters {
  uint64_t retransmitted_packets = 0;
  uint64_t timeouts = 0;
  uint64_t nacks = 0;
  uint64_t queue_pair_errors = 0;
  uint64_t ecn_marked = 0;  // data packets that came in marked
  uint64_t cnp = 0;         // sent
  // Messages with a tolerated loss, and how many of their packets may be lost.
  uint64_t tolerant_messages = 0;
  uint64_t dispensable_packets = 0;
  // What receivers did without.
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
};

// Ends of connections that took a port of a NIC out of use, and that put one back.
struct PortCounters {
  uint64_t failovers = 0;
  uint64_t recoveries = 0;

  static constexpr auto Fields() {
    return FieldTable("port counters", field::Unrepeatable("failovers", &PortCounters::failovers),
                      field::Unrepeatable("recoveries", &PortCounters::recoveries));
  }
};

class NetworkStack {
 public:
  virtual ~NetworkStack() = default;

  // The transport of a job's connections between these two GPUs.
  virtual Transport& Between(uint32_t source_gpu, uint32_t destination_gpu) = 0;
  // The transport of somebody else's flows, which no collective library has made.
  virtual Transport& Plain() = 0;
  // The queue pairs below, where there are such: NICs share their ports with them.
  virtual QueueTransport* queue_pairs() { return nullptr; }
  // Whether a connection between two GPUs may be one of these queue pairs: then what goes on among
  // some NICs alone can be replayed by itself.
  virtual bool HasQueuePairConnections() const { return false; }
  // The connections around NICs that have failed, where there can be such.
  virtual NicDetours* detours() { return nullptr; }
  // What ends a flow whose end does not answer begins so; empty: nothing does.
  virtual const char* NoAnswer() const { return ""; }

  virtual StackCounters counters() const { return {}; }
  // Of flows of Plain() whose payload is counted apart.
  virtual uint64_t counted_payload_bytes() const { return 0; }
  virtual PortCounters port_counters() const { return {}; }
  // Puts the stack in charge of its packets (FabricNetwork::SetSinkOf).
  virtual void TakePackets(FabricNetwork& /*network*/) {}
  virtual void OnRoutesChanged() = 0;
  // All transports of the stack, by name, in the order in which snapshots walk them.
  virtual std::vector<std::pair<std::string, Transport*>> transports() = 0;
};

// What a stack is made of. All references outlive the stack.
struct NetworkStackParts {
  const FabricGraph& graph;
  FabricNetwork& network;
  EcmpRouting& routing;
  LoadStoreTransport& load_store;
  ProxyThreads& proxies;
};

// How a scenario sets a stack up.
struct NetworkStackSettings {
  std::string name = "rdma";
  NicSettings nic;
  std::vector<NicVariant> nic_variants;
  NetIbSettings ib;
  NetSocketSettings socket;
};

using NetworkStackFactory = std::function<std::unique_ptr<NetworkStack>(
    const NetworkStackParts&, const NetworkStackSettings&)>;

}  // namespace railyard
