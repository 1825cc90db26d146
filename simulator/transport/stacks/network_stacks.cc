// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/stacks/network_stacks.h"

#include <map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/flow/flow_stack.h"
#include "simulator/transport/stacks/rdma_stack.h"
#include "simulator/transport/stacks/socket_stack.h"

namespace railyard {
namespace {

template <typename Stack>
std::unique_ptr<NetworkStack> Make(const NetworkStackParts& parts,
                                   const NetworkStackSettings& settings) {
  return std::make_unique<Stack>(parts, settings);
}

std::map<std::string, NetworkStackFactory>& Stacks() {
  static std::map<std::string, NetworkStackFactory> stacks = {{"rdma", &Make<RdmaStack>},
                                                              {"sockets", &Make<SocketStack>}};
  return stacks;
}

}  // namespace

void RegisterNetworkStack(const std::string& name, NetworkStackFactory factory) {
  const bool is_new = Stacks().emplace(name, std::move(factory)).second;
  SIM_CHECK(is_new, "two network stacks of one name");
}

std::vector<std::string> NetworkStackNames() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Stacks()) names.push_back(name);
  return names;
}

std::unique_ptr<NetworkStack> MakeNetworkStack(const NetworkStackParts& parts,
                                               const NetworkStackSettings& settings) {
  if (parts.flows != nullptr) {
    SIM_CHECK(settings.name == "rdma", "a network stack that has no flow mode");
    return std::make_unique<FlowStack>(parts, settings);
  }
  const auto found = Stacks().find(settings.name);
  SIM_CHECK(found != Stacks().end(), "a network stack that is not registered");
  return found->second(parts, settings);
}

}  // namespace railyard
