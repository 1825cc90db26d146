// SPDX-License-Identifier: GPL-2.0-only
// Defines identifiers of the parts of a fabric that are neither links nor devices of its graph.
#pragma once

#include "simulator/units/identifier.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Identifies a link in one lossless class. One wire may have several (Dally: "Virtual-channel flow
// control", 1992).
using VirtualChannelId = Identifier<struct VirtualChannelTag>;
// Returns the channel of a link in class 0, which has the same number as the link. Links outside of
// the network are always in class 0.
constexpr VirtualChannelId FirstChannelOf(LinkId link) { return VirtualChannelId{uint32_t{link}}; }

// Identifies a shared buffer of a switch or NIC.
using BufferId = Identifier<struct BufferTag>;
// Stands for no buffer. Links that do not end, or do not start, in a buffer have this identifier.
inline constexpr BufferId kNoBuffer{0};

}  // namespace railyard
