// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/stacks/flow_stack.h"

#include "simulator/transport/stacks/network_stack_settings.h"

namespace railyard {

FlowStack::FlowStack(const NetworkStackParts& parts, const NetworkStackSettings& settings)
    : transport_({.graph = parts.graph,
                  .network = parts.network,
                  .flows = *parts.flows,
                  .routing = parts.routing},
                 settings.nic, settings.ib) {}

}  // namespace railyard
