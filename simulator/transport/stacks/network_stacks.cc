// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/stacks/network_stacks.h"

#include <map>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/stacks/flow_stack.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "simulator/transport/stacks/rdma_stack.h"
#include "simulator/transport/stacks/socket_stack.h"

namespace railyard {
namespace {

template <typename Stack>
std::unique_ptr<NetworkStack> Make(const NetworkStackParts& parts,
                                   const NetworkStackSettings& settings) {
  return std::make_unique<Stack>(parts, settings);
}

struct RegisteredStack {
  NetworkStackFactory factory;
  NetworkStackTraits traits;
};

std::map<std::string, RegisteredStack>& Stacks() {
  static std::map<std::string, RegisteredStack> stacks = {
      {"rdma",
       {&Make<RdmaStack>,
        {.moves_connections = true,
         .has_flow_mode = true,
         .runs_divided = true,
         .sends_packets = true}}},
      {"sockets", {&Make<SocketStack>, {.sends_packets = true}}}};
  return stacks;
}

const RegisteredStack& StackOf(const std::string& name) {
  const auto found = Stacks().find(name);
  SIM_CHECK(found != Stacks().end(), "a network stack that is not registered");
  return found->second;
}

}  // namespace

void RegisterNetworkStack(const std::string& name, NetworkStackFactory factory,
                          const NetworkStackTraits& traits) {
  const bool is_new = Stacks().emplace(name, RegisteredStack{std::move(factory), traits}).second;
  SIM_CHECK(is_new, "two network stacks of one name");
}

std::vector<std::string> NetworkStackNames() {
  std::vector<std::string> names;
  for (const auto& [name, stack] : Stacks()) names.push_back(name);
  return names;
}

const NetworkStackTraits* FindNetworkStackTraits(const std::string& name) {
  const auto found = Stacks().find(name);
  return found == Stacks().end() ? nullptr : &found->second.traits;
}

std::unique_ptr<NetworkStack> MakeNetworkStack(const NetworkStackParts& parts,
                                               const NetworkStackSettings& settings) {
  const RegisteredStack& stack = StackOf(settings.name);
  if (parts.flows == nullptr) {
    std::unique_ptr<NetworkStack> made = stack.factory(parts, settings);
    SIM_CHECK(!stack.traits.moves_connections || made->detours() != nullptr,
              "a network stack that moves connections and has no detours");
    SIM_CHECK(!stack.traits.runs_divided || made->queue_pairs() != nullptr,
              "a network stack that is divided and has no queue pairs");
    return made;
  }
  SIM_CHECK(stack.traits.has_flow_mode, "a network stack that has no flow mode");
  return std::make_unique<FlowStack>(parts, settings);
}

}  // namespace railyard
