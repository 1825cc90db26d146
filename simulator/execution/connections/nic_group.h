// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// What GPUs, each of a server and with a NIC of its own, send one another over the one switch that
// all their NICs are at.
struct NicGroup {
  std::vector<uint32_t> gpus;
  std::vector<ConnectionId> connections{};  // in an order that is the same on like rails
  std::vector<LinkId> links{};              // in that order, each once
  std::optional<DeviceId> at{};             // the switch; none: it is not so
  uint64_t identity = 0;                    // what orders events and ways there
  uint64_t version = 0;                     // ConnectionTable's, when it was so
};

}  // namespace railyard
