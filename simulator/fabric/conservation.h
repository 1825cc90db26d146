// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/fabric/buffer/channel_accounts.h"
#include "simulator/fabric/buffer/shared_buffers.h"
#include "simulator/fabric/fabric_part.h"
#include "simulator/fabric/in_network/in_network_reduction.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/link/link_states.h"
#include "simulator/fabric/tables/fabric_tables.h"

namespace railyard {

// Refers to the objects of a network that count packets and bytes.
struct CountingObjects {
  const FabricTables& tables;
  const ChannelAccounts& accounts;
  const SharedBuffers& buffers;
  const LinkStates& states;
  const LinkDelays& delays;
  const InNetworkReduction& reduction;
  const FabricPart& part;
};

// Ends the program unless packets are conserved: for every link, the packets put on it = arrived
// + lost + still on it; for every switch, the packets in = put on its links + dropped; and every
// account equals the sum of its packets.
void CheckConservation(const CountingObjects& network);

}  // namespace railyard
