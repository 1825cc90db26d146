// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes a group of GPUs, each with its own NIC, and the network connections among them. `at` is
// set if all these connections cross the same switch.
struct NicGroup {
  std::vector<GpuIndex> gpus;
  std::vector<ConnectionId> connections{};  // in an order common to corresponding rails
  std::vector<LinkId> links{};              // in the order of the connections, each once
  std::optional<DeviceId> at{};             // the only switch, if there is one
  uint64_t identity = 0;                    // hash of all that orders events and routes
  uint64_t version = 0;                     // ConnectionTable::network_version() when made
};

}  // namespace railyard
