// SPDX-License-Identifier: GPL-2.0-only
// Loads blocks of a scenario that hold the attributes of an ns-3 model. A field sets the attribute
// with its name in camel case: `ecn_pmax` sets EcnPmax. If the attribute's name ends with the unit
// of its integer (Bytes, Ps, Bps), the field is text with a unit and omits it: `buffer` sets
// BufferBytes. The attribute defines the range of the values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include <ns3/object.h>
#include <ns3/string.h>
#include <ns3/type-id.h>

#include "simulator/scenario/schema/model_attribute.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Returns the attribute that a field sets; nullopt if there is none.
std::optional<ns3::TypeId::AttributeInformation> AttributeOfField(
    const std::string& type, const google::protobuf::FieldDescriptor& field);

// Describes a block of a scenario that holds attributes: its path, e.g.
// "nic.congestion_control.dcqcn", and the type of the model.
struct ModelBlock {
  std::string path;
  std::string type;
  const google::protobuf::Descriptor* fields;
};
std::vector<ModelBlock> ModelBlocks();

// RangeOf() returns the values that an attribute accepts, e.g. "1 to 2 GiB", "PFC, CREDITS or
// NONE"; empty if ns-3 does not state them. WithUnit() returns `value`, as ns-3 writes it, with its
// unit.
enum class UnitStyle { kWritten, kLeftOut };
std::string RangeOf(const ns3::TypeId::AttributeInformation& attribute,
                    UnitStyle style = UnitStyle::kWritten);
std::string WithUnit(const ns3::TypeId::AttributeInformation& attribute, const std::string& value);

// Returns one attribute for each field that is set in `block` and is not a message. A value that
// the attribute does not accept is an error that lists the accepted values. Precondition: each
// field has an attribute.
std::vector<ModelAttribute> LoadModelAttributes(const ProtoCursor& block, const std::string& type,
                                                Diagnostics& diagnostics);

// Returns a model of that type with the attributes, for inspection.
template <typename Model>
ns3::Ptr<Model> MakeModel(const std::vector<ModelAttribute>& attributes) {
  const auto model = ns3::CreateObject<Model>();
  for (const ModelAttribute& attribute : attributes) {
    model->SetAttribute(attribute.name, ns3::StringValue(attribute.value));
  }
  return model;
}

}  // namespace railyard
