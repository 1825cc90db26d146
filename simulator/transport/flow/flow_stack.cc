// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/flow/flow_stack.h"

#include "simulator/transport/stacks/network_stack_settings.h"
namespace railyard {

FlowStack::FlowStack(const NetworkStackParts& parts, const NetworkStackSettings& settings)
    : rdma_(parts.graph, parts.network, parts.routing, settings.nic, settings.nic_variants),
      striped_(parts.graph, rdma_, parts.network.engine(), settings.nic, settings.ib),
      transport_(*parts.flows, parts.network, rdma_, striped_, settings.nic) {}

}  // namespace railyard
