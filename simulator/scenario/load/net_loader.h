// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// As NCCL_NET names it, without regard to case; nullopt: none of them.
std::optional<NetPlugin> NetNamed(std::string name);

// Of `nccl`: by what servers are joined. Refuses what has no effect with it. Takes a cursor on the
// whole scenario.
NetPlugin LoadNet(const ProtoCursor& scenario, Diagnostics& diagnostics);

}  // namespace railyard
