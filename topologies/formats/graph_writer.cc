// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/graph_writer.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/dynamic_property_map.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <fmt/format.h>

#include "simulator/units/units.h"
#include "topologies/formats/fabric_attributes.h"

namespace railyard {
namespace {

// A cable is one edge, numbered as the cables are.
using Cables =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                          boost::property<boost::edge_index_t, uint32_t>>;
using Vertex = Cables::vertex_descriptor;
using Edge = Cables::edge_descriptor;

Cables CablesOf(const FabricGraph& fabric) {
  Cables cables(fabric.device_count());
  for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
    const LinkId link = fabric.cables()[i].forward;
    boost::add_edge(fabric.link_source(link), fabric.link_target(link), i, cables);
  }
  return cables;
}

const char* ShapeOf(DeviceKind kind) {
  static constexpr std::array kShapes = {"box",     "hexagon", "ellipse",
                                         "octagon", "diamond", "house"};
  return kShapes[static_cast<size_t>(kind)];
}

// From inside a server outwards: Okabe and Ito's colours for all kinds of eyes.
const char* ColourOf(Tier tier) {
  static constexpr std::array<const char*, kTierCount> kColours = {
      "#009E73", "#999999", "#000000", "#0072B2", "#D55E00", "#56B4E9", "#E69F00", "#CC79A7"};
  return kColours[static_cast<size_t>(tier)];
}

// `name: value`, in quotes where the field is a text; nothing where the part has no value.
std::string TextField(std::string_view name, const std::string& value) {
  constexpr std::array<std::string_view, 10> kBare = {"kind",
                                                      "server",
                                                      "local_index",
                                                      "tier",
                                                      "lanes",
                                                      "routing",
                                                      "deadlock_avoidance",
                                                      "circuit_slots",
                                                      "compute_capability",
                                                      "peer_access"};
  if (value.empty()) return {};
  const bool is_bare = std::find(kBare.begin(), kBare.end(), name) != kBare.end();
  return is_bare ? fmt::format(" {}: {}", name, value) : fmt::format(" {}: \"{}\"", name, value);
}

std::string DotAttribute(std::string_view name, const std::string& value) {
  return value.empty() ? std::string() : fmt::format(" {}=\"{}\"", name, value);
}

}  // namespace

std::string ToTopologyText(const FabricGraph& fabric) {
  std::string text;
  for (const std::string_view name : kFabricAttributes) {
    const std::string field = TextField(name, FabricAttribute(fabric, name));
    if (!field.empty()) text += fmt::format("{}\n", field.substr(1));
  }
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    text += "devices {";
    for (const std::string_view name : kDeviceAttributes) {
      text += TextField(name, DeviceAttribute(fabric, id, name));
    }
    text += " }\n";
  }
  for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
    const LinkId link = fabric.cables()[i].forward;
    text += fmt::format("links {{ from: \"{}\" to: \"{}\"",
                        fabric.device(fabric.link_source(link)).name,
                        fabric.device(fabric.link_target(link)).name);
    for (const std::string_view name : kCableAttributes) {
      text += TextField(name, CableAttribute(fabric, i, name));
    }
    text += " }\n";
  }
  return text;
}

std::string ToGraphMl(const FabricGraph& fabric) {
  const Cables cables = CablesOf(fabric);
  boost::dynamic_properties properties;
  for (const std::string_view name : kFabricAttributes) {
    properties.property(std::string(name),
                        boost::make_function_property_map<Cables*, std::string>(
                            [&, name](Cables*) { return FabricAttribute(fabric, name); }));
  }
  for (const std::string_view name : kDeviceAttributes) {
    properties.property(
        std::string(name),
        boost::make_function_property_map<Vertex, std::string>([&, name](Vertex vertex) {
          return DeviceAttribute(fabric, static_cast<DeviceId>(vertex), name);
        }));
  }
  for (const std::string_view name : kCableAttributes) {
    properties.property(
        std::string(name),
        boost::make_function_property_map<Edge, std::string>([&, name](const Edge& edge) {
          return CableAttribute(fabric, boost::get(boost::edge_index, cables, edge), name);
        }));
  }
  std::ostringstream text;
  boost::write_graphml(text, cables, properties, true);
  return text.str();
}

std::string ToDot(const FabricGraph& fabric) {
  const Cables cables = CablesOf(fabric);
  std::ostringstream text;
  boost::write_graphviz(
      text, cables,
      [&](std::ostream& out, Vertex vertex) {
        const auto id = static_cast<DeviceId>(vertex);
        const Device& device = fabric.device(id);
        out << fmt::format("[label=\"{}\" shape={}", device.name, ShapeOf(device.kind));
        for (const std::string_view name : kDeviceAttributes) {
          out << DotAttribute(name, DeviceAttribute(fabric, id, name));
        }
        out << "]";
      },
      [&](std::ostream& out, const Edge& edge) {
        const uint32_t cable = boost::get(boost::edge_index, cables, edge);
        const LinkProperties& link = fabric.link(fabric.cables()[cable].forward);
        out << fmt::format("[color=\"{}\" tooltip=\"{} {} {}\"", ColourOf(link.tier),
                           TierName(link.tier), FormatRate(link.rate_bps),
                           FormatDuration(link.propagation_ps));
        for (const std::string_view name : kCableAttributes) {
          out << DotAttribute(name, CableAttribute(fabric, cable, name));
        }
        out << "]";
      },
      [&](std::ostream& out) {
        out << fmt::format("label=\"{}\"\nlayout=sfdp\noverlap=prism\n", fabric.name);
        for (const std::string_view name : kFabricAttributes) {
          const std::string attribute = DotAttribute(name, FabricAttribute(fabric, name));
          if (!attribute.empty()) out << attribute.substr(1) << "\n";
        }
      });
  return text.str();
}

}  // namespace railyard
