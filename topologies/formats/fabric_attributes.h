// SPDX-License-Identifier: GPL-2.0-only
// Gives the parts of a fabric as named texts for graph files (GraphML, DOT). Names and units are
// those of railyard.protos.Topology.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

// The field names of Topology, TopologyDevice and TopologyLink, without the two fields for a link's
// ends.
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

// Returns the exact value with its unit; empty if the part has no such value. `name` is one of the
// arrays above.
std::string FabricAttribute(const FabricGraph& fabric, std::string_view name);
std::string DeviceAttribute(const FabricGraph& fabric, DeviceId device, std::string_view name);
std::string CableAttribute(const FabricGraph& fabric, uint32_t cable, std::string_view name);

}  // namespace railyard
