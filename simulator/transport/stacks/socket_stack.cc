// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/stacks/socket_stack.h"

#include "simulator/transport/stacks/network_stack_settings.h"
namespace railyard {

SocketStack::SocketStack(const NetworkStackParts& parts, const NetworkStackSettings& settings)
    : tcp_(parts.graph, parts.network, parts.routing, settings.nic, settings.nics),
      sockets_(tcp_, parts.network.engine(), settings.nic.mtu_bytes, settings.socket,
               parts.proxies) {}

void SocketStack::TakePackets(FabricNetwork& network) {
  network.SetSinkOf({PacketKind::kNetworkData, PacketKind::kAck}, tcp_);
}

}  // namespace railyard
