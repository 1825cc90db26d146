// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/transport/contract/network_stack.h"

namespace railyard {

// Adds a stack that scenarios can choose by its name. A name that is taken is an error of the
// program. The stacks that ship, "rdma" and "sockets", are there from the start.
void RegisterNetworkStack(const std::string& name, NetworkStackFactory factory);
// All names, sorted.
std::vector<std::string> NetworkStackNames();
// Precondition: `settings.name` is registered.
std::unique_ptr<NetworkStack> MakeNetworkStack(const NetworkStackParts& parts,
                                               const NetworkStackSettings& settings);

}  // namespace railyard
