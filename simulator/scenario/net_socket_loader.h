// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "simulator/transport/net_socket_settings.h"

namespace railyard {

// Of `nccl` and `gpu`: whether servers are joined by TCP sockets, and how. Refuses what has no
// effect beside them, or without them. Takes a cursor on the whole scenario.
NetSocketSettings LoadNetSocket(const ProtoCursor& scenario, Diagnostics& diagnostics);

}  // namespace railyard
