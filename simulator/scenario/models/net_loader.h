// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <optional>
#include <string>

#include "simulator/text_proto/text_proto.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Returns the plug-in that NCCL_NET names, without regard to case; nullopt for other names.
std::optional<NetPlugin> NetNamed(std::string name);

// Loads from `nccl` the network between servers. Refuses fields that have no effect with it.
// `scenario` is a cursor on the whole scenario.
NetPlugin LoadNet(const ProtoCursor& scenario, Diagnostics& diagnostics);

// Returns the name of the network stack that carries messages between servers. `scenario` is a
// cursor on the whole scenario. Refuses a name that is not registered, and a name that contradicts
// `net`.
std::string LoadTransport(const ProtoCursor& scenario, NetPlugin net, Diagnostics& diagnostics);

}  // namespace railyard
