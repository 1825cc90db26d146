// SPDX-License-Identifier: GPL-2.0-only
// Takes the messages of a lane's slice out of their slots, and sends those it produces by stores,
// by proxies or by switches.
//
// Over NVLink and PCIe the CTA's stores are the transfer. Packets leave while the CTA works, and
// its warps wait when the port cannot take them. The slice is complete when the last packet has
// arrived and the CTA has finished. A slice without bytes is only a flag that follows the slice
// before it, and a flag in the opposite direction frees a slot. A flag takes the latency of the
// wire and needs no packet. If the sender's slot is in host memory (NCCL's SHM), the receiving CTA
// first loads the slice from there. Over the network the CTA stages the slice for its proxy.
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
#include "simulator/units/job_ids.h"

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
  // Enables LaneObserver::OnPayloadTaken() for the collective from now on.
  void WatchPayload(CollectiveIndex collective) { watched_.insert(collective); }

  // Takes and sends the messages of the lane's current slice, which the CTA has moved at `done_ps`.
  void Move(Lane& lane, int64_t done_ps);
  // Requests the switch's sum of the operands of the current slice. Precondition: it has operands.
  void RequestSum(const Lane& lane);

  // Loads the current slice from host memory, where its senders have left it. Returns false if
  // there is nothing to load.
  bool Load(Lane& lane);
  // Loads the next slice while the slice before is still being sent, if the lane has seen all of
  // the next slice.
  void LoadAhead(Lane& lane);

  // Called when a message is in the memory of the receiver or of the relaying GPU, even if the
  // sender's copy is still running. Slices that consist of a flag alone become visible behind it.
  void OnStored(ConnectionId connection);

 private:
  void Take(const Lane& lane, ConnectionId connection, int64_t done_ps);
  void Send(Lane& lane, ConnectionId connection, int64_t done_ps);
  void SendBySwitch(const Lane& lane, const LaneConnections& peers, int64_t done_ps);
  void SendToNetworkSum(const Lane& lane, ConnectionId connection, int64_t done_ps);
  void OnRelayed(ConnectionId connection);
  // Returns when a message written at `written_ps` is in memory together with its flag, which
  // cannot be before `before_ps`.
  int64_t HerePs(const MessageSlots& slots, int64_t before_ps, int64_t written_ps,
                 bool has_flag) const;
  bool HasFlagBehindData(ConnectionId connection) const;

  Parts parts_;
  std::set<CollectiveIndex> watched_;
  PathTracer* paths_ = nullptr;  // null: paths are not kept
};

}  // namespace railyard
