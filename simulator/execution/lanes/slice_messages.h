// SPDX-License-Identifier: GPL-2.0-only
// What a slice does to the connections of its lane: messages are taken out of their slots, and sent
// by stores, by proxies or by switches.
//
// Over NVLink and PCIe the CTA's stores are the transfer: packets leave while it works, its warps
// wait where the port does not take them, and the slice is complete when both the last packet has
// arrived and the CTA is done. A slice without bytes is a flag behind the slice before it, and a
// slot becomes free by a flag the other way; flags are the wire's latency without a packet. Where
// the sender's slot is in a host's memory (NCCL's SHM), the receiving CTA loads the slice from
// there before it goes on with it. Over the network the CTA stages the slice for its proxy.
#pragma once

#include <cstdint>
#include <set>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/execution/sums/network_sums.h"
#include "simulator/execution/sums/switch_sums.h"
#include "simulator/transport/load_store/load_store_transport.h"

namespace railyard {

class SliceMessages {
 public:
  // All references must outlive this.
  struct Parts {
    FabricSimulatorImpl& engine;
    ConnectionTable& table;
    LaneTable& lanes;
    const CtaClock& clock;
    LaneWakes& wakes;
    NetworkProxies& proxies;
    NetworkSums& network_sums;
    SwitchSums& switch_sums;
    LoadStoreTransport& load_store;
    LaneObserver& observer;
  };
  explicit SliceMessages(const Parts& parts) : parts_(parts) {}

  void KeepPaths(PathTracer& paths) { paths_ = &paths; }
  // From now on LaneObserver::OnPayloadTaken() tells of that collective.
  void WatchPayload(uint32_t collective) { watched_.insert(collective); }

  // Takes and sends the lane's slice at hand, which the CTA has moved at `done_ps`.
  void Move(Lane& lane, int64_t done_ps);
  // Has the switch add up the operands of the slice at hand. Precondition: it has some.
  void RequestSum(const Lane& lane);

  // Loads the slice at hand from where its senders left it in host memory; false: nothing to load.
  bool Load(Lane& lane);
  // The same while the slice before is being sent, if the lane has seen all of it.
  void LoadAhead(Lane& lane);

  // A message is in the memory of the receiver, or of the GPU that relays it; the sender's copy may
  // still be at work. The flags that follow it alone are seen behind it.
  void OnStored(ConnectionId connection);

 private:
  void Take(const Lane& lane, ConnectionId connection, int64_t done_ps);
  void Send(Lane& lane, ConnectionId connection, int64_t done_ps);
  void SendBySwitch(const Lane& lane, const LaneConnections& peers, int64_t done_ps);
  void SendToNetworkSum(const Lane& lane, ConnectionId connection, int64_t done_ps);
  void OnRelayed(ConnectionId connection);
  // When a message that was written at `written_ps` is in memory with its flag, behind `before_ps`.
  int64_t HerePs(const MessageSlots& slots, int64_t before_ps, int64_t written_ps,
                 bool has_flag) const;
  bool HasFlagBehindData(ConnectionId connection) const;

  Parts parts_;
  std::set<uint32_t> watched_;   // collectives
  PathTracer* paths_ = nullptr;  // where paths are kept
};

}  // namespace railyard
