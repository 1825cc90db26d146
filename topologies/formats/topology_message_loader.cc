// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/topology_message_loader.h"

#include <utility>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto_check.h"
#include "simulator/units/number.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/formats/topology_file_loader.h"

namespace railyard {

using google::protobuf::FieldDescriptor;

TopologyMessage::TopologyMessage(const std::string& path)
    : TopologyMessage(path, std::make_unique<protos::Topology>()) {}

TopologyMessage::TopologyMessage(const std::string& path,
                                 std::unique_ptr<protos::Topology> topology)
    : file_{.path = path, .message = nullptr, .sets = {}, .places = {}, .mistakes = {}},
      topology_(*topology) {
  file_.message = std::move(topology);
}

void TopologyMessage::StartDevice(int line) {
  topology_.add_devices();
  file_.places[fmt::format("devices[{}]", device_count() - 1)] = {.line = line, .column = 1};
}

void TopologyMessage::StartLink(int line) {
  topology_.add_links();
  file_.places[fmt::format("links[{}]", link_count() - 1)] = {.line = line, .column = 1};
}

int TopologyMessage::device_count() const { return topology_.devices_size(); }

int TopologyMessage::link_count() const { return topology_.links_size(); }

const std::string& TopologyMessage::DeviceName() const {
  return topology_.devices(device_count() - 1).name();
}

google::protobuf::Message& TopologyMessage::MessageOf(Part part) const {
  if (part == Part::kDevice) return *topology_.mutable_devices(topology_.devices_size() - 1);
  if (part == Part::kLink) return *topology_.mutable_links(topology_.links_size() - 1);
  return topology_;
}

bool TopologyMessage::Knows(Part part, const std::string& field) const {
  const google::protobuf::Descriptor* type = protos::Topology::descriptor();
  if (part == Part::kDevice) type = protos::TopologyDevice::descriptor();
  if (part == Part::kLink) type = protos::TopologyLink::descriptor();
  const FieldDescriptor* descriptor = type->FindFieldByName(field);
  return descriptor != nullptr && !descriptor->is_repeated();
}

bool TopologyMessage::Has(Part part, const std::string& field) const {
  const google::protobuf::Message& message = MessageOf(part);
  return message.GetReflection()->HasField(message,
                                           message.GetDescriptor()->FindFieldByName(field));
}

std::string TopologyMessage::Set(Part part, const std::string& field, const std::string& text) {
  SIM_CHECK(Knows(part, field), field);
  google::protobuf::Message& message = MessageOf(part);
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const FieldDescriptor* descriptor = message.GetDescriptor()->FindFieldByName(field);
  if (descriptor->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(&message, descriptor, text);
    return {};
  }
  if (descriptor->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const auto* value = descriptor->enum_type()->FindValueByName(text);
    if (value == nullptr || value->number() == 0) {
      return UnknownName(field, text, ValueNames(*descriptor->enum_type()));
    }
    reflection.SetEnum(&message, descriptor, value);
    return {};
  }
  if (descriptor->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    if (text != "true" && text != "false") {
      return fmt::format("{} {} is not true or false", field, Quote(text));
    }
    reflection.SetBool(&message, descriptor, text == "true");
    return {};
  }
  const auto number = NumberOf<uint32_t>(text);
  if (!number) {
    return fmt::format("{} {} is not a number (expected 0 to {})", field, Quote(text), UINT32_MAX);
  }
  reflection.SetUInt32(&message, descriptor, *number);
  return {};
}

std::optional<FabricGraph> TopologyMessage::Load(Diagnostics& diagnostics) {
  return LoadTopology(ProtoCursor(file_), diagnostics);
}

}  // namespace railyard
