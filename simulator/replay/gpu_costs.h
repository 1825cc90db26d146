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
  // From the last byte of a slice being in the receiver's buffer to the receiver using it. NVLink:
  // hwLat NVLINK Ring Simple 3.4 us, less 0.5 us on the wire. Network: hwLat NET Ring Simple 14 us,
  // less 1.5 us on the wire and the proxy's cost.
  int64_t nvlink_step_latency_ps = 2'900 * kPsPerNs;
  int64_t network_step_latency_ps = 9'500 * kPsPerNs;
  // What one channel (one CTA) copies or reduces: perChMaxTreeBws of Hopper, one node, 38.7 GB/s.
  // 0: no limit.
  uint64_t channel_rate_bps = 309'600'000'000;
  // The CPU proxy's cost per message it posts; posts of one rank follow one another. Intel's 1 us
  // net overhead, three times for Simple.
  int64_t proxy_post_latency_ps = 3'000 * kPsPerNs;
};

}  // namespace railyard
