// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/topo_picture.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

namespace railyard {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void Text(Writer& json, const char* key, std::string_view value) {
  json.Key(key);
  json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void Number(Writer& json, const char* key, uint64_t value) {
  json.Key(key);
  json.Uint64(value);
}

// Returns the layer of every device; it is 2 for switches without a path to a NIC.
std::vector<uint32_t> Layers(const FabricGraph& fabric) {
  std::vector<uint32_t> layer(fabric.device_count(), 0);
  std::vector<DeviceId> queue;
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    const DeviceKind kind = fabric.device(id).kind;
    if (kind == DeviceKind::kNic || kind == DeviceKind::kNvSwitch) layer[id] = 1;
    if (kind == DeviceKind::kNic) queue.push_back(id);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const auto& edge :
         boost::make_iterator_range(boost::out_edges(queue[i], fabric.graph()))) {
      const auto next = static_cast<DeviceId>(boost::target(edge, fabric.graph()));
      if (fabric.device(next).kind != DeviceKind::kSwitch || layer[next] != 0) continue;
      layer[next] = layer[queue[i]] + 1;
      queue.push_back(next);
    }
  }
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    if (fabric.device(id).kind == DeviceKind::kSwitch) layer[id] = std::max(layer[id], 2u);
  }
  return layer;
}

void WriteNodes(Writer& json, const FabricGraph& fabric) {
  const std::vector<uint32_t> layers = Layers(fabric);
  json.Key("nodes");
  json.StartArray();
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    const Device& device = fabric.device(id);
    json.StartObject();
    Text(json, "name", device.name);
    Text(json, "kind", DeviceKindName(device.kind));
    if (fabric.IsInServer(id)) Number(json, "server", device.server);
    Number(json, "layer", layers[id]);
    json.EndObject();
  }
  json.EndArray();
}

void WriteLinks(Writer& json, const FabricGraph& fabric) {
  std::map<std::tuple<DeviceId, DeviceId, Tier, uint64_t>, uint64_t> links;
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    ++links[{fabric.link_source(cable.forward), fabric.link_target(cable.forward), link.tier,
             link.rate_bps}];
  }
  json.Key("links");
  json.StartArray();
  for (const auto& [link, cables] : links) {
    const auto& [source, target, tier, rate_bps] = link;
    json.StartObject();
    Number(json, "source", source);
    Number(json, "target", target);
    Text(json, "tier", TierName(tier));
    Number(json, "rate_bps", rate_bps);
    Number(json, "cables", cables);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string PictureJson(const FabricGraph& fabric) {
  rapidjson::StringBuffer buffer;
  Writer json(buffer);
  json.StartObject();
  Text(json, "name", fabric.name);
  WriteNodes(json, fabric);
  WriteLinks(json, fabric);
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

}  // namespace railyard
