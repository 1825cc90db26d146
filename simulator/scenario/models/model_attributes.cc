// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/model_attributes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <ns3/nstime.h>
#include <ns3/string.h>

#include "simulator/diagnostics/check.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

using google::protobuf::FieldDescriptor;

enum class Unit { kNone, kBytes, kPs, kBps };

struct UnitSuffix {
  const char* suffix;
  Unit unit;
};
constexpr std::array<UnitSuffix, 4> kSuffixes = {
    {{"", Unit::kNone}, {"Bytes", Unit::kBytes}, {"Ps", Unit::kPs}, {"Bps", Unit::kBps}}};

std::string CamelCase(const std::string& name) {
  std::string camel;
  bool starts_word = true;
  for (const char c : name) {
    if (c == '_') {
      starts_word = true;
      continue;
    }
    camel += starts_word ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts_word = false;
  }
  return camel;
}

struct FieldAttribute {
  ns3::TypeId::AttributeInformation attribute;
  Unit unit = Unit::kNone;
};

bool IsTime(const ns3::TypeId::AttributeInformation& attribute) {
  return attribute.checker->GetValueTypeName() == "ns3::TimeValue";
}

Unit UnitOf(const ns3::TypeId::AttributeInformation& attribute) {
  if (IsTime(attribute)) return Unit::kPs;
  for (const UnitSuffix& suffix : kSuffixes) {
    if (suffix.unit != Unit::kNone && attribute.name.ends_with(suffix.suffix)) return suffix.unit;
  }
  return Unit::kNone;
}

std::optional<FieldAttribute> Find(const std::string& type, const FieldDescriptor& field) {
  const ns3::TypeId id = ns3::TypeId::LookupByName(type);
  for (const UnitSuffix& suffix : kSuffixes) {
    FieldAttribute found;
    if (!id.LookupAttributeByName(CamelCase(field.name()) + suffix.suffix, &found.attribute)) {
      continue;
    }
    found.unit = suffix.unit;
    if (found.attribute.checker->GetValueTypeName() == "ns3::TimeValue") found.unit = Unit::kPs;
    return found;
  }
  return std::nullopt;
}

// As a scenario writes it: "40 Mbps".
std::string FormatBitRate(uint64_t rate_bps) {
  constexpr std::array<std::pair<uint64_t, const char*>, 3> kUnits = {
      {{1'000'000'000, "Gbps"}, {1'000'000, "Mbps"}, {1'000, "kbps"}}};
  for (const auto& [scale, name] : kUnits) {
    if (rate_bps >= scale) {
      return fmt::format("{:g} {}", static_cast<double>(rate_bps) / static_cast<double>(scale),
                         name);
    }
  }
  return fmt::format("{} bps", rate_bps);
}

// A bound as ns-3's checkers write it.
std::string FormatBound(const ns3::TypeId::AttributeInformation& attribute,
                        const std::string& bound) {
  return IsTime(attribute) ? FormatDuration(ns3::Time(bound).GetPicoSeconds())
                           : WithUnit(attribute, bound);
}

// The largest value of its type: no bound.
bool IsNoBound(const ns3::TypeId::AttributeInformation& attribute, const std::string& bound) {
  if (IsTime(attribute)) return ns3::Time(bound) >= ns3::Seconds(9'000'000);
  const double value = std::stod(bound);
  return value >= 1.8e19 || value == std::numeric_limits<uint32_t>::max();
}

// The value as ns-3 reads it; nullopt after an error.
std::optional<std::string> ValueOf(const ProtoCursor& block, const FieldDescriptor& field,
                                   const FieldAttribute& found, Diagnostics& diagnostics) {
  const google::protobuf::Message& message = block.message();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const char* const name = field.name().c_str();
  const int errors_before = diagnostics.error_count();
  std::string value;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (found.unit == Unit::kBytes) {
        value = std::to_string(block.Bytes(diagnostics, name, 0));
      } else if (found.unit == Unit::kBps) {
        value = std::to_string(block.RateBps(diagnostics, name, 0));
      } else {
        const int64_t ps = block.DurationPs(diagnostics, name, 0);
        const bool is_time = found.attribute.checker->GetValueTypeName() == "ns3::TimeValue";
        value = fmt::format("{}{}", ps, is_time ? "ps" : "");
      }
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      value = std::to_string(reflection.GetUInt32(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      value = std::to_string(reflection.GetUInt64(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      value = fmt::format("{}", reflection.GetDouble(message, &field));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      value = reflection.GetBool(message, &field) ? "true" : "false";
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      value = reflection.GetEnum(message, &field)->name();
      break;
    default:
      SIM_CHECK(false, "a field of a kind no attribute has: " + field.full_name());
  }
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return value;
}

}  // namespace

std::vector<ModelBlock> ModelBlocks() {
  std::vector<ModelBlock> blocks = {
      {"network", "railyard::FabricNetwork", protos::Network::descriptor()},
      {"nic", "railyard::Nic", protos::Nic::descriptor()},
      {"routing", "railyard::Routing", protos::Routing::descriptor()},
      {"switch", "railyard::Switch", protos::Switch::descriptor()}};
  const google::protobuf::Descriptor& controls = *protos::CongestionControl::descriptor();
  for (int i = 0; i < controls.field_count(); ++i) {
    const FieldDescriptor& control = *controls.field(i);
    if (control.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;  // a registered one
    blocks.push_back({"nic.congestion_control." + control.name(),
                      "railyard::" + control.message_type()->name(), control.message_type()});
  }
  return blocks;
}

std::string WithUnit(const ns3::TypeId::AttributeInformation& attribute, const std::string& value) {
  const Unit unit = UnitOf(attribute);
  if (unit == Unit::kNone) return value;
  if (IsTime(attribute)) return FormatDuration(ns3::Time(value).GetPicoSeconds());
  uint64_t number = 0;
  const char* const end = value.data() + value.size();
  if (std::from_chars(value.data(), end, number).ptr != end) return value;
  if (unit == Unit::kBytes) return FormatBytes(number);
  return unit == Unit::kPs ? FormatDuration(static_cast<int64_t>(number)) : FormatBitRate(number);
}

std::string RangeOf(const ns3::TypeId::AttributeInformation& attribute, UnitStyle style) {
  const std::string known = attribute.checker->GetUnderlyingTypeInformation();
  if (known == "bool") return "true or false";
  if (attribute.checker->GetValueTypeName() == "ns3::EnumValue") {
    std::string names;
    for (size_t start = 0; start <= known.size();) {
      const size_t end = std::min(known.find('|', start), known.size());
      if (start > 0) names += end == known.size() ? " or " : ", ";
      names += known.substr(start, end - start);
      start = end + 1;
    }
    return names;
  }
  // "TYPE MIN:MAX"
  const size_t space = known.find(' ');
  const size_t colon = known.find(':', space == std::string::npos ? 0 : space);
  if (space == std::string::npos || colon == std::string::npos) return "";
  const auto shown = [&](const std::string& bound) {
    return style == UnitStyle::kWritten ? FormatBound(attribute, bound) : bound;
  };
  const std::string min = shown(known.substr(space + 1, colon - space - 1));
  const std::string max = known.substr(colon + 1);
  if (IsNoBound(attribute, max)) return min + " or more";
  return fmt::format("{} to {}", min, shown(max));
}

std::optional<ns3::TypeId::AttributeInformation> AttributeOfField(const std::string& type,
                                                                  const FieldDescriptor& field) {
  const auto found = Find(type, field);
  if (!found) return std::nullopt;
  return found->attribute;
}

std::vector<ModelAttribute> LoadModelAttributes(const ProtoCursor& block, const std::string& type,
                                                Diagnostics& diagnostics) {
  std::vector<ModelAttribute> attributes;
  const google::protobuf::Descriptor& descriptor = *block.message().GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || !block.Has(field.name().c_str())) {
      continue;
    }
    const auto found = Find(type, field);
    SIM_CHECK(found.has_value(), fmt::format("{} has no attribute {}", type, field.full_name()));
    const std::optional<std::string> value = ValueOf(block, field, *found, diagnostics);
    if (!value) continue;
    if (found->attribute.checker->CreateValidValue(ns3::StringValue(*value)) == nullptr) {
      const std::string written = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING
                                      ? Quote(block.Text(field.name().c_str(), ""))
                                      : *value;
      block.Error(
          diagnostics, field.name().c_str(),
          fmt::format("{} is out of range (expected {})", written,
                      RangeOf(found->attribute, field.cpp_type() == FieldDescriptor::CPPTYPE_STRING
                                                    ? UnitStyle::kWritten
                                                    : UnitStyle::kLeftOut)));
      continue;
    }
    attributes.push_back({type, found->attribute.name, *value});
  }
  return attributes;
}

}  // namespace railyard
