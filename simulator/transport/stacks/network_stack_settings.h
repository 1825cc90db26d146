// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/nic/nic.h"
#include "simulator/transport/nic/nic_settings.h"
#include "simulator/transport/tcp/net_socket_settings.h"

namespace railyard {

// Holds a scenario's choice of a network stack, and the settings of every stack. A stack reads
// those of its own transports.
struct NetworkStackSettings {
  std::string name = "rdma";  // under which the stack is registered
  bool uses_flows = false;    // flow mode: messages are flows instead of packets
  NicSettings nic;
  std::vector<NicVariant> nic_variants{};  // NICs with other settings than `nic`
  // The NICs as MakeNics() has made them, if a program knows them before the stack exists; else
  // empty.
  std::vector<ns3::Ptr<Nic>> nics{};
  NetIbSettings ib{};
  NetSocketSettings socket{};  // if enabled, `nic` is for TCP
};

}  // namespace railyard
