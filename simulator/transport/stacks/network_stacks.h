// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/transport/contract/network_stack.h"

namespace railyard {

// Adds a stack that scenarios can choose by its name. Registering a name twice is a programming
// error. The built-in stacks, "rdma" and "sockets", are always registered.
void RegisterNetworkStack(const std::string& name, NetworkStackFactory factory);
// Returns all names, sorted.
std::vector<std::string> NetworkStackNames();
// Precondition: `settings.name` is registered.
std::unique_ptr<NetworkStack> MakeNetworkStack(const NetworkStackParts& parts,
                                               const NetworkStackSettings& settings);

}  // namespace railyard
