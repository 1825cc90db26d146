// SPDX-License-Identifier: GPL-2.0-only
// Defines the arguments that a network's trace sources pass to their callbacks.
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct PacketDropped {
  int64_t time_ps;
  const Packet* packet;
  DropReason reason;
  LinkId link;
};
struct LinkStateChanged {
  int64_t time_ps;
  LinkId link;
  bool up;
};
struct PauseSent {
  int64_t time_ps;
  LinkId link;  // the link whose sender pauses or resumes
  bool xoff;
};
struct EcnMarked {
  int64_t time_ps;
  const Packet* packet;
  LinkId link;  // whose queue the packet joins
};

}  // namespace railyard
