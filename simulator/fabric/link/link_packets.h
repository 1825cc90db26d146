// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/tables/fabric_tables.h"

namespace railyard {

// Calls visit(index, is_timed) for each packet that was put on a link and has not left it. A packet
// is timed if it is on the wire or delayed behind it, or if its time there is fixed.
template <typename Visit>
void ForEachPacketOn(const FabricTables& tables, const LinkDelays& delays, LinkId link,
                     Visit visit) {
  tables.ForEachTimed(tables.links[link], [&](PacketId index) { visit(index, true); });
  if (const DelayLine* const line = delays.Find(link)) {
    for (const DelayLine::LatePacket& late : line->late()) visit(late.packet, true);
  }
  if (tables.IsShort(link)) return;
  tables.ForEachWaiting(*tables.FindPort(link), [&](PacketId index) { visit(index, false); });
}

}  // namespace railyard
