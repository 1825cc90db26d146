// SPDX-License-Identifier: GPL-2.0-only
// Packets change their lossless class on their way where routes in one class could deadlock.
#include <fmt/format.h>

#include "simulator/fabric/fabric_network.h"

namespace railyard {

// The virtual channel it came by is still known as that of class 0, the class it came in by `tag`.
void FabricNetwork::AssignClass(Packet& packet) {
  const auto class_before = static_cast<uint8_t>(packet.tag);
  const LinkId before = packet.ingress;
  if (before != Packet::kNone) packet.ingress = ChannelOf(before, class_before);
  const bool is_balanced = load_balancing_ != LoadBalancing::kEcmp;
  if (is_balanced && packet.kind == PacketKind::kRdmaWrite && before != Packet::kNone) {
    packet.tag = classes_->Next(before, class_before, packet.link);
  } else {
    packet.tag = path_classes_[packet.path + packet.hop];
  }
}

std::string FabricNetwork::NameOf(VirtualChannelId channel) const {
  const LinkId link = LinkOf(channel);
  const std::string& name = graph_->link(link).name;
  return ClassCountOf(link) == 1 ? name
                                 : fmt::format("{} class {}", name, LosslessClassOf(channel));
}

}  // namespace railyard
