// SPDX-License-Identifier: GPL-2.0-only
// A fabric's parts as named texts, in the words of railyard.protos.Topology: what graph files hold.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Field names of Topology, TopologyDevice and TopologyLink (but for a link's ends).
inline constexpr std::array<std::string_view, 7> kFabricAttributes = {
    "name",          "routing",   "deadlock_avoidance", "circuit_slots",
    "slot_duration", "dark_time", "drain_time"};
inline constexpr std::array<std::string_view, 9> kDeviceAttributes = {"name",
                                                                      "kind",
                                                                      "server",
                                                                      "local_index",
                                                                      "forwarding_latency",
                                                                      "coordinates",
                                                                      "compute_capability",
                                                                      "peer_access",
                                                                      "cpu"};
inline constexpr std::array<std::string_view, 5> kCableAttributes = {"tier", "rate", "delay",
                                                                     "lanes", "slots"};

// The value, exact and with its unit; empty where the part has none. `name` is one of the above.
std::string FabricAttribute(const FabricGraph& fabric, std::string_view name);
std::string DeviceAttribute(const FabricGraph& fabric, DeviceId device, std::string_view name);
std::string CableAttribute(const FabricGraph& fabric, uint32_t cable, std::string_view name);

}  // namespace railyard
