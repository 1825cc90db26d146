// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/diagnostics/text_proto.h"
#include "simulator/transport/nic_settings.h"

namespace railyard {

// The block `nic`: all but the retransmission, which `nccl` says. `is_tcp`: of TCP streams. Takes a
// cursor on the whole scenario; an absent block means the defaults.
NicSettings LoadNic(const ProtoCursor& scenario, bool is_tcp, Diagnostics& diagnostics);

}  // namespace railyard
