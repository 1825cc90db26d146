// SPDX-License-Identifier: GPL-2.0-only
// Computes the costs of a collective on the GPU and on the CPU proxy. The figures are those of
// NCCL's tuner (src/graph/tuning.cc, 2.30) without the parts that this simulator models packet by
// packet. The tuner adds them up to choose an algorithm; the simulator applies each where it
// arises.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/units/units.h"
#include "workloads/collectives/replayable.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Holds the costs of one algorithm with one protocol.
struct StepCosts {
  // Time from the stream reaching the operation to the first instruction of its channels.
  int64_t launch_latency_ps = 0;
  // Time from the arrival of a slice's last byte in the receiver's buffer to its use there.
  int64_t nvlink_step_latency_ps = 0;
  // Time that a CTA spends between two slices on the fence before the flag, on barriers and on
  // pointers in shared memory. The flag travels meanwhile, so a step's latency contains this time
  // too.
  int64_t slice_overhead_ps = 0;
  // Latency of a slice over the network besides the proxy's work and the wire. The simulator
  // assumes that half of it passes before the post (the proxy polls the CTA's flag) and half after
  // the arrival (the proxy polls the completion queue, then the CTA polls the proxy's flag); see
  // sendProxyProgress and recvProxyProgress in src/transport/net.cc.
  int64_t network_step_latency_ps = 0;
  // Payload that one channel (one CTA) copies or reduces per second. 0: no limit.
  uint64_t channel_rate_bps = 0;
  // Payload that one warp of a part of the CTA copies per second, and all parts together. A part is
  // a send or a receive of Send and Recv with warps of its own (WarpShare). 0: the parts share
  // channel_rate_bps, each at a fixed rate.
  uint64_t warp_rate_bps = 0;
  uint64_t parts_rate_bps = 0;
  // A channel begins its next round (CollectiveSchedule::AreOneRound) no earlier than its payload
  // takes at this rate, and this overhead later. A rate of 0 is no limit.
  uint64_t round_rate_bps = 0;
  int64_t round_overhead_ps = 0;
  // Payload that all threads of the CTA move in one iteration of their loop over a slice. A later
  // iteration with fewer bytes takes as long, because every thread waits for its line. 0: unknown.
  uint64_t iteration_bytes = 0;
  // If true, the GPU itself, and not a proxy, posts its messages to the NIC and polls for arrivals.
  bool gpu_posts = false;

  int64_t LatencyBeforePostPs() const { return network_step_latency_ps / 2; }
  int64_t LatencyAfterArrivalPs() const { return network_step_latency_ps - LatencyBeforePostPs(); }
  bool operator==(const StepCosts&) const = default;
};

// Holds the time that a message occupies a GPU's proxy.
struct ProxyCosts {
  int64_t post_ps = 0;
  int64_t arrival_ps = 0;
  // Time for the completion of each stripe of a message, at either end.
  int64_t completion_ps = 0;
};

// Holds the scenario's settings of costs, and computes the costs from them.
struct GpuCosts {
  // These values replace the table's for all algorithms and protocols, where they are set.
  std::optional<int64_t> launch_latency_ps;
  std::optional<int64_t> nvlink_step_latency_ps;
  std::optional<int64_t> network_step_latency_ps;
  std::optional<uint64_t> channel_rate_bps;
  // These factors scale the table's values where no value is set above.
  double launch_latency_scale = 1;
  double step_latency_scale = 1;  // over NVLink and over the network
  double channel_rate_scale = 1;
  // Time the CPU proxy is busy with each message it posts. The default is the CPU's net overhead
  // (NetOverheadUs), which is that of one post. (NCCL triples it for Simple, but only as a lower
  // bound of a step's latency; on Intel CPUs the bound is below the 3.4 us of the table.) The proxy
  // of a GPU does one thing at a time. A stated value contains the completions of EFA.
  std::optional<int64_t> proxy_post_latency_ps;
  // Time the CPU proxy is busy with each message that arrives, which includes posting the next
  // clear-to-send. The default is half the time of a post (ADR 0096).
  std::optional<int64_t> proxy_arrival_latency_ps;
  // The network plug-in. Amazon's has different latencies between servers.
  NetPlugin net = NetPlugin::kIb;
  // Row of the tables to use. By default the fabric determines it.
  std::optional<GpuGeneration> generation;

  // Returns the costs of the choice's algorithm and protocol. Precondition: both are set.
  // `channel_count` matters where it exceeds NCCL's own number of NVLS's channels.
  StepCosts Of(const CommunicatorLayout& layout, const ReplayChoice& choice,
               uint32_t channel_count = 0) const;
  // Returns the costs of a proxy on this kind of CPU.
  ProxyCosts OfProxy(CommunicatorCpu cpu) const;
};

}  // namespace railyard
