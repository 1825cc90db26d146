// SPDX-License-Identifier: GPL-2.0-only
// Identifiers of the parts of a fabric that are no links or devices of its graph.
#pragma once

#include "simulator/units/identifier.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// A link in one lossless class. One wire may have several (Dally: "Virtual-channel flow control",
// 1992).
using VirtualChannelId = Identifier<struct VirtualChannelTag>;
// The channel of a link in class 0, in which links outside of the network always are: the two have
// the same number.
constexpr VirtualChannelId FirstChannelOf(LinkId link) { return VirtualChannelId{uint32_t{link}}; }

// A shared buffer of a switch or NIC.
using BufferId = Identifier<struct BufferTag>;
// Stands for no buffer: links that end in none, or leave none, have this one.
inline constexpr BufferId kNoBuffer{0};

}  // namespace railyard
