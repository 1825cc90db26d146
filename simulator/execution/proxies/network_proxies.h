// SPDX-License-Identifier: GPL-2.0-only
// What CPU proxies do for the network connections of their GPUs (sendProxyProgress and
// recvProxyProgress, src/transport/net.cc). The sender's CTA stages a slice in a slot. Its proxy
// sees that, waits for the receiver's clear-to-send, and posts the message to the connection's
// transport; over a transport that buffers messages it does not wait. The receiver's proxy sees the
// message arrive, and grants the next one once a slot is free.
//
// A proxy is one thread for each GPU: every post and every arrival occupies it for a while, one
// after the other. Proxies know the contract of transports, and wake lanes; they never run them.
#pragma once

#include <cstdint>
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
  };
  // `costs` are those of each GPU's proxy. Registers the events of proxies with the engine.
  NetworkProxies(const Parts& parts, std::vector<ProxyCosts> costs);
  NetworkProxies(const NetworkProxies&) = delete;
  NetworkProxies& operator=(const NetworkProxies&) = delete;

  void KeepPaths(PathTracer& paths) { paths_ = &paths; }

  // --- What lanes ask for ------------------------------------------------------------------------
  // The next slice of a connection, whose slot is filled, is complete at `done_ps` where its proxy
  // looks for it.
  void Stage(ConnectionId connection, uint8_t costs, int64_t done_ps) {
    Schedule(done_ps + parts_.clock.costs(costs).LatencyBeforePostPs(), connection, Phase::kStaged);
  }
  // The receiver has used a message: another one may be granted from `done_ps` on.
  void GrantAt(int64_t done_ps, ConnectionId connection) {
    Schedule(done_ps, connection, Phase::kGranted);
  }
  // Grants a lane's messages as far as its credits go.
  void Grant(LaneIndex lane, ConnectionId connection);

  // --- What transports say -----------------------------------------------------------------------
  // The oldest message is in the receiver's memory, acknowledged, granted.
  void OnDelivered(ConnectionId connection);
  void OnCompleted(ConnectionId connection);
  void OnGranted(ConnectionId connection);
  // The sum of the network's switches is there.
  void OnSumDelivered(ConnectionId connection);

  // --- Connections that move ---------------------------------------------------------------------
  // The connection leaves its flow; it has another one. Both ends know what the receiver has, for
  // they tell one another out of band: the rest is granted and posted again.
  void OnLeave(ConnectionId connection);
  void Resend(ConnectionId connection, LaneObserver& observer);

  // What one message costs the GPU's proxy.
  const ProxyCosts& CostsOf(uint32_t gpu) const { return costs_[gpu]; }

 private:
  // What a kPost event is for; in the low bits of its target.
  enum class Phase : uint8_t { kStaged, kPosted, kGranted };
  static constexpr uint32_t kPhaseBits = 2;
  static_assert(sizeof(MessageSlots) % (1u << kPhaseBits) == 0);

  static void HandlePost(void* self, uint32_t target);
  void Schedule(int64_t time_ps, ConnectionId connection, Phase phase);
  void On(Phase phase, ConnectionId connection);
  void OnStaged(ConnectionId connection);
  void Post(ConnectionId connection);
  // Has the proxy post what is staged and granted.
  void QueueReady(ConnectionId connection);
  // When the GPU's proxy has posted one message more, or has seen one more arrive.
  int64_t PostedPs(uint32_t gpu) {
    return parts_.threads.Occupy(gpu, parts_.engine.NowPs(), costs_[gpu].post_ps);
  }
  int64_t SeenPs(uint32_t gpu) {
    return parts_.threads.Occupy(gpu, parts_.engine.NowPs(), costs_[gpu].arrival_ps);
  }

  Parts parts_;
  std::vector<ProxyCosts> costs_;  // by GPU
  PathTracer* paths_ = nullptr;    // where paths are kept
};

}  // namespace railyard
