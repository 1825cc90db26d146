// SPDX-License-Identifier: GPL-2.0-only
// What the GPU's and the CPU's side of a collective costs. The figures are NCCL's own
// (src/graph/tuning.cc, 2.30), less what this simulator makes packets go through: NCCL's tuner adds
// them up to choose; here each is waited for where it arises.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/units/units.h"
#include "workloads/collectives/replayable.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Of one algorithm with one protocol.
struct StepCosts {
  // From the stream reaching the operation to its channels' first instruction.
  int64_t launch_latency_ps = 0;
  // From the last byte of a slice being in the receiver's buffer to the receiver using it.
  int64_t nvlink_step_latency_ps = 0;
  // What a CTA spends between two slices: the fence before the flag, barriers, pointers through
  // shared memory. It passes while the flag is on its way, so it is in the latency of a step too.
  int64_t slice_overhead_ps = 0;
  // What a slice over the network waits for besides the proxy and the wire. That half of it passes
  // before the post (the proxy polls the CTA's flag) and half after the arrival (the proxy polls
  // the completion queue, then the CTA the proxy's flag) is assumed (src/transport/net.cc,
  // sendProxyProgress and recvProxyProgress).
  int64_t network_step_latency_ps = 0;
  // What one channel (one CTA) copies or reduces of payload. 0: no limit.
  uint64_t channel_rate_bps = 0;
  // Payload that all threads of the CTA move in one iteration of their loop over a slice. One
  // behind the first takes as long with fewer bytes: every thread waits for its line. 0: too little
  // to tell.
  uint64_t iteration_bytes = 0;

  int64_t LatencyBeforePostPs() const { return network_step_latency_ps / 2; }
  int64_t LatencyAfterArrivalPs() const { return network_step_latency_ps - LatencyBeforePostPs(); }
  bool operator==(const StepCosts&) const = default;
};

// Of a GPU's proxy, with each message.
struct ProxyCosts {
  int64_t post_ps = 0;
  int64_t arrival_ps = 0;
};

struct GpuCosts {
  // Where stated, instead of the table's, whatever the algorithm and the protocol.
  std::optional<int64_t> launch_latency_ps;
  std::optional<int64_t> nvlink_step_latency_ps;
  std::optional<int64_t> network_step_latency_ps;
  std::optional<uint64_t> channel_rate_bps;
  // Factors of the table's, where nothing is stated.
  double launch_latency_scale = 1;
  double step_latency_scale = 1;  // over NVLink and over the network
  double channel_rate_scale = 1;
  // How long the CPU proxy is busy with each message it posts; not stated: the CPU's net overhead
  // (NetOverheadUs), which is that of a post. (Simple's three times that is a latency, with Intel's
  // CPUs below the 3.4 us.) What one GPU's proxy does follows one another.
  std::optional<int64_t> proxy_post_latency_ps;
  // The same with each that arrives, for which it posts the next clear-to-send; not stated: half of
  // a post's (ADR 0096).
  std::optional<int64_t> proxy_arrival_latency_ps;
  // Amazon's plug-in has latencies of its own between servers.
  NetPlugin net = NetPlugin::kIb;
  // Whose row of the tables holds; from the fabric where it is not stated.
  std::optional<GpuGeneration> generation;

  // Preconditions: a stated algorithm and protocol.
  StepCosts Of(const CommunicatorLayout& layout, const ReplayChoice& choice) const;
  ProxyCosts OfProxy(CommunicatorCpu cpu) const;
};

}  // namespace railyard
