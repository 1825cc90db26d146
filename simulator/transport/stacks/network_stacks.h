// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/transport/contract/network_stack.h"

namespace railyard {

// States what a stack supports.
struct NetworkStackTraits {
  bool moves_connections = false;  // to other NICs; it needs NetworkStack::detours()
  bool has_flow_mode = false;
  bool runs_divided = false;  // among a run's processes; it needs NetworkStack::queue_pairs()
  // Over the links of the network: what acts on packets is refused otherwise.
  bool sends_packets = false;
};

// Adds a stack that scenarios can choose by its name. Registering a name twice is a programming
// error. Those of network_stacks.cc are always registered.
void RegisterNetworkStack(const std::string& name, NetworkStackFactory factory,
                          const NetworkStackTraits& traits = {});
// Returns all names, sorted.
std::vector<std::string> NetworkStackNames();
// Returns nullptr if no stack has this name.
const NetworkStackTraits* FindNetworkStackTraits(const std::string& name);
// Precondition: `settings.name` is registered.
std::unique_ptr<NetworkStack> MakeNetworkStack(const NetworkStackParts& parts,
                                               const NetworkStackSettings& settings);

}  // namespace railyard
