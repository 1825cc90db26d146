// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "topologies/graph/graph_ids.h"

namespace railyard {

// Holds the record that a switch's egress port writes into a data packet when it joins the queue
// (in-band telemetry for HPCC: Li et al., SIGCOMM 2019, section 3.2). HPCC's switches write when
// the packet leaves, so the record here is older by the packet's time in the queue.
struct HopTelemetry {
  int64_t time_ps = 0;
  uint64_t sent_bytes = 0;  // by the port so far
  uint64_t backlog_bytes = 0;
  uint64_t rate_bps = 0;
  LinkId link = LinkId::kNone;
};

// Holds the records that one packet has collected. Hops beyond the last slot are not recorded:
// HPCC's header has five.
struct PacketTelemetry {
  static constexpr uint32_t kHopsMax = 5;
  std::array<HopTelemetry, kHopsMax> hops;
  uint32_t hop_count = 0;

  std::span<const HopTelemetry> span() const { return {hops.data(), hop_count}; }
};

}  // namespace railyard
