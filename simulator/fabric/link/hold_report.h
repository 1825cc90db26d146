// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

enum class HoldKind : uint8_t { kPauseStorm, kBufferDeadlock };
const char* HoldKindName(HoldKind kind);  // "PAUSE_STORM", "BUFFER_DEADLOCK"

// Reports a link whose data was paused, or without credit, for as long as FabricNetwork's
// StormThreshold. It is a deadlock if the link waits, over full buffers, for itself: the packets of
// each link of the cycle wait for the next link, and those of the last one for the first.
struct HoldReport {
  int64_t time_ps;  // when the threshold was reached
  LinkId link;
  HoldKind kind;
  std::vector<std::string> cycle;  // names of links, from `link` on; empty for a storm
};

}  // namespace railyard
