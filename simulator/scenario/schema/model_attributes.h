// SPDX-License-Identifier: GPL-2.0-only
// Blocks of a scenario that are the attributes of an ns-3 model: a field sets the attribute whose
// name is the field's in camel case, `ecn_pmax` EcnPmax. Where the attribute's name ends with the
// unit of its integer (Bytes, Ps, Bps), the field is text with a unit and does without: `buffer`
// is BufferBytes. What a value may be is what the attribute says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include <ns3/object.h>
#include <ns3/string.h>
#include <ns3/type-id.h>

#include "simulator/text_proto/text_proto.h"

namespace railyard {

struct ModelAttribute {
  std::string type;  // "railyard::Switch"
  std::string name;  // "BufferBytes"
  std::string value;
};

// The attribute a field stands for; nullopt if there is none.
std::optional<ns3::TypeId::AttributeInformation> AttributeOfField(
    const std::string& type, const google::protobuf::FieldDescriptor& field);

// Every block of a scenario that holds attributes: its path, "nic.congestion_control.dcqcn", and
// the type whose they are.
struct ModelBlock {
  std::string path;
  std::string type;
  const google::protobuf::Descriptor* fields;
};
std::vector<ModelBlock> ModelBlocks();

// What an attribute may be, "1 to 2 GiB", "PFC, CREDITS or NONE"; empty where ns-3 does not say.
// The other gives `value`, as ns-3 writes it, its unit.
enum class UnitStyle { kWritten, kLeftOut };
std::string RangeOf(const ns3::TypeId::AttributeInformation& attribute,
                    UnitStyle style = UnitStyle::kWritten);
std::string WithUnit(const ns3::TypeId::AttributeInformation& attribute, const std::string& value);

// One for each field that is set in `block` and is no message. Precondition: each has its
// attribute. A value the attribute does not take is an error that says what it takes.
std::vector<ModelAttribute> LoadModelAttributes(const ProtoCursor& block, const std::string& type,
                                                Diagnostics& diagnostics);

// A model of that type with the attributes, to be looked at.
template <typename Model>
ns3::Ptr<Model> MakeModel(const std::vector<ModelAttribute>& attributes) {
  const auto model = ns3::CreateObject<Model>();
  for (const ModelAttribute& attribute : attributes) {
    model->SetAttribute(attribute.name, ns3::StringValue(attribute.value));
  }
  return model;
}

}  // namespace railyard
