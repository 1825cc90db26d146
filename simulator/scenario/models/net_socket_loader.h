// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "simulator/transport/tcp/net_socket_settings.h"

namespace railyard {

// Loads from `nccl` and `gpu` how TCP sockets join servers, if `is_enabled`. Refuses fields that
// have no effect with them, or without them. `scenario` is a cursor on the whole scenario.
NetSocketSettings LoadNetSocket(const ProtoCursor& scenario, bool is_enabled,
                                Diagnostics& diagnostics);

}  // namespace railyard
