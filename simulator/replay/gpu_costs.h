// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/units/units.h"

namespace railyard {

// What the GPU's and the CPU's side of a collective costs, for Ring and the Simple protocol. The
// figures are NCCL's own (src/graph/tuning.cc), less what this simulator makes packets go through.
struct GpuCosts {
  // From the stream reaching the operation to its channels' first instruction: baseLat, Ring,
  // Simple.
  int64_t launch_latency_ps = 8'400 * kPsPerNs;
  // From the last byte of a slice being in the receiver's buffer to the receiver using it: hwLat
  // NVLINK Ring Simple 3.4 us, less 0.5 us on the wire.
  int64_t nvlink_step_latency_ps = 2'900 * kPsPerNs;
  // What a slice over the network waits for besides the proxy and the wire: hwLat NET Ring Simple
  // 14 us, less 1 us of proxy and 1.5 us on the wire. The total is NCCL's; that half of it passes
  // before the post (the proxy polls the CTA's flag) and half after the arrival (the proxy polls
  // the completion queue, then the CTA the proxy's flag) is assumed (src/transport/net.cc,
  // sendProxyProgress and recvProxyProgress).
  int64_t network_step_latency_ps = 11'500 * kPsPerNs;
  // What one channel (one CTA) copies or reduces: perChMaxTreeBws of Hopper, one node, 38.7 GB/s.
  // 0: no limit.
  uint64_t channel_rate_bps = 309'600'000'000;
  // How long the CPU proxy is busy with each message it posts; those of one GPU's proxy follow one
  // another: Intel's net overhead. (Simple's three times that is a latency, below the 3.4 us.)
  int64_t proxy_post_latency_ps = 1'000 * kPsPerNs;

  int64_t LatencyBeforePostPs() const { return network_step_latency_ps / 2; }
  int64_t LatencyAfterArrivalPs() const { return network_step_latency_ps - LatencyBeforePostPs(); }
};

}  // namespace railyard
