// SPDX-License-Identifier: GPL-2.0-only
// Models the CPU proxies' work for the network connections of their GPUs (sendProxyProgress and
// recvProxyProgress, src/transport/net.cc). The sender's CTA stages a slice in a slot. Its proxy
// notices the slice, waits for the receiver's clear-to-send, and posts the message to the
// connection's transport; over a transport that buffers messages it does not wait. The receiver's
// proxy sees the message arrive, and grants the next one once a slot is free.
//
// Each GPU has one proxy thread. Each post and each arrival occupies it for some time, one after
// the other. Proxies use the transports' interface and wake lanes, but never run lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/sums/network_sums.h"
#include "simulator/transport/contract/proxy_threads.h"

namespace railyard {

// Names an event of a network message at its sender. The proxy may post it because it is staged and
// granted (kQueued), has posted it (kPosted), or has its acknowledgement (kCompleted).
enum class MessageEvent : uint8_t { kQueued, kPosted, kCompleted };
using MessageWatcher = std::function<void(MessageEvent, ConnectionId, uint32_t slot)>;

class NetworkProxies {
 public:
  // All references must outlive this.
  struct Parts {
    FabricSimulatorImpl& engine;
    ProxyThreads& threads;
    ConnectionTable& table;
    LaneTable& lanes;
    const CtaClock& clock;
    LaneWakes& wakes;
    NetworkSums& sums;
    // Owns the state that the events change, if there is a replay cache.
    const StateOwner* state = nullptr;
  };
  // Registers the events of proxies with the engine. `costs` has one entry per GPU.
  NetworkProxies(const Parts& parts, std::vector<ProxyCosts> costs);
  NetworkProxies(const NetworkProxies&) = delete;
  NetworkProxies& operator=(const NetworkProxies&) = delete;

  void KeepPaths(PathTracer& paths) { paths_ = &paths; }
  // Calls `watcher` for each event of a message. kQueued is not reported over transports that
  // buffer messages. The watcher is not called for replayed messages or sums in switches.
  void Watch(MessageWatcher watcher) { watchers_.push_back(std::move(watcher)); }

  // --- Requests of lanes -------------------------------------------------------------------------
  // Stages the next slice of a connection, which is complete in its slot at `done_ps`.
  void Stage(ConnectionId connection, uint8_t costs, int64_t done_ps) {
    Schedule(done_ps + parts_.clock.costs(costs).LatencyBeforePostPs(), connection, Phase::kStaged);
  }
  // Grants further messages at `done_ps`, when the receiver has used a message.
  void GrantAt(int64_t done_ps, ConnectionId connection) {
    Schedule(done_ps, connection, Phase::kGranted);
  }
  // Grants a lane's messages as far as its credits allow.
  void Grant(LaneIndex lane, ConnectionId connection);

  // --- Callbacks of transports -------------------------------------------------------------------
  // Called when the next message of the connection is in the receiver's memory.
  void OnDelivered(ConnectionId connection);
  // Called when the next message is acknowledged.
  void OnCompleted(ConnectionId connection);
  // Called when the next grant has arrived at the sender.
  void OnGranted(ConnectionId connection);
  // Must be called when the sum of the network's switches has arrived.
  void OnSumDelivered(ConnectionId connection);

  // --- Connections that move to another NIC ------------------------------------------------------
  // OnLeave() is called before a connection abandons its flow, Resend() when it has another one.
  // Both ends know from their out-of-band exchange which messages the receiver has. The others are
  // granted and posted again.
  void OnLeave(ConnectionId connection);
  void Resend(ConnectionId connection, LaneObserver& observer);

  // Returns the costs of one message for the GPU's proxy.
  const ProxyCosts& CostsOf(GpuIndex gpu) const { return costs_[gpu]; }

 private:
  // States the purpose of a kPost event; it is encoded in the low bits of the event's target.
  enum class Phase : uint8_t { kStaged, kPosted, kGranted };
  static constexpr uint32_t kPhaseBits = 2;
  static_assert(sizeof(MessageSlots) % (1u << kPhaseBits) == 0);

  static void HandlePost(void* self, uint32_t target);
  void Schedule(int64_t time_ps, ConnectionId connection, Phase phase);
  void On(Phase phase, ConnectionId connection);
  void OnStaged(ConnectionId connection);
  void Post(ConnectionId connection);
  // Posts the messages that are both staged and granted.
  void QueueReady(ConnectionId connection);
  // Occupies the proxy of the sender, or of the receiver, for one message of the connection.
  // Returns when it has posted the message, or has seen it arrive. If GPUs do this themselves, no
  // proxy is occupied.
  int64_t PostedPs(ConnectionId connection);
  int64_t SeenPs(ConnectionId connection);
  // Returns the time that completions of the slot's message occupy a proxy besides.
  int64_t CompletionsPs(const ProxyCosts& costs, ConnectionId connection, uint32_t slot) const;
  void Notify(MessageEvent event, ConnectionId connection, uint32_t slot) {
    for (const MessageWatcher& watcher : watchers_) watcher(event, connection, slot);
  }

  Parts parts_;
  std::vector<ProxyCosts> costs_;  // by GPU
  PathTracer* paths_ = nullptr;    // null: paths are not kept
  std::vector<MessageWatcher> watchers_;
};

}  // namespace railyard
