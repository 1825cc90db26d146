// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "simulator/diagnostics/check.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"

namespace railyard {

using google::protobuf::FieldDescriptor;

ProtoCursor::ProtoCursor(const TextProtoFile& file)
    : file_(&file), message_(file.message.get()), where_{file.path, file.is_text, file.is_text} {}

void ProtoCursor::CheckType(const google::protobuf::Descriptor& type) const {
  SIM_CHECK(message_->GetDescriptor() == &type,
            fmt::format("{} is not {}", message_->GetDescriptor()->full_name(), type.full_name()));
}

const FieldDescriptor* ProtoCursor::Field(const char* name) const {
  const FieldDescriptor* field = message_->GetDescriptor()->FindFieldByName(name);
  SIM_CHECK(field != nullptr,
            fmt::format("{} has no field {}", message_->GetDescriptor()->full_name(), name));
  return field;
}

bool ProtoCursor::Has(const char* field) const {
  return message_->GetReflection()->HasField(*message_, Field(field));
}

int ProtoCursor::Size(const char* repeated_field) const {
  return message_->GetReflection()->FieldSize(*message_, Field(repeated_field));
}

ProtoCursor ProtoCursor::Child(const char* field, int index) const {
  const auto& reflection = *message_->GetReflection();
  ProtoCursor child;
  child.file_ = file_;
  child.message_ = index < 0 ? &reflection.GetMessage(*message_, Field(field))
                             : &reflection.GetRepeatedMessage(*message_, Field(field), index);
  child.path_ = Path(field, index);
  child.where_ = Where(field, index);
  return child;
}

SourceLocation ProtoCursor::Where(const char* field, int index) const {
  const auto place = file_->places.find(Path(field, index));
  return place == file_->places.end() ? where_ : file_->Locate(place->second);
}

std::string ProtoCursor::Path(const char* field, int index) const {
  std::string path = path_.empty() ? field : path_ + "." + field;
  if (index >= 0) path += fmt::format("[{}]", index);
  return path;
}

bool ProtoCursor::IsDoubtful(const char* field, int index) const {
  return file_->IsDoubtful(Path(field, index));
}

void ProtoCursor::Error(Diagnostics& diagnostics, const char* field, std::string what,
                        int index) const {
  if (file_->IsUnreadable(Path(field, index))) return;
  diagnostics.Error(Where(field, index), Path(field, index), std::move(what));
}

void ProtoCursor::Warning(Diagnostics& diagnostics, const char* field, std::string what,
                          int index) const {
  if (file_->IsUnreadable(Path(field, index))) return;
  diagnostics.Warning(Where(field, index), Path(field, index), std::move(what));
}

void ProtoCursor::Missing(Diagnostics& diagnostics, const char* field,
                          std::string_view expected) const {
  if (IsDoubtful(field)) return;
  diagnostics.Error(where_, Path(field), fmt::format("missing (expected {})", expected));
}

std::string ProtoCursor::String(const char* field, int index) const {
  const auto& reflection = *message_->GetReflection();
  return index < 0 ? reflection.GetString(*message_, Field(field))
                   : reflection.GetRepeatedString(*message_, Field(field), index);
}

int64_t ProtoCursor::DurationPs(Diagnostics& diagnostics, const char* field,
                                int64_t default_ps) const {
  if (!Has(field)) return default_ps;
  const std::string text = String(field, -1);
  if (const auto value = ParseDurationPs(text)) return *value;
  Error(diagnostics, field, fmt::format("{} {}", Quote(text), WhyNoDuration(text)));
  return default_ps;
}

uint64_t ProtoCursor::RateBps(Diagnostics& diagnostics, const char* field,
                              uint64_t default_bps) const {
  if (!Has(field)) return default_bps;
  const std::string text = String(field, -1);
  if (const auto value = ParseRateBps(text)) return *value;
  Error(diagnostics, field, fmt::format("{} {}", Quote(text), WhyNoRate(text)));
  return default_bps;
}

uint64_t ProtoCursor::Bytes(Diagnostics& diagnostics, const char* field,
                            uint64_t default_bytes) const {
  if (!Has(field)) return default_bytes;
  const std::string text = String(field, -1);
  if (const auto value = ParseBytes(text)) return *value;
  Error(diagnostics, field, fmt::format("{} {}", Quote(text), WhyNoBytes(text)));
  return default_bytes;
}

uint64_t ProtoCursor::Number(Diagnostics& diagnostics, const char* field, uint64_t default_value,
                             uint64_t min, uint64_t max) const {
  if (!Has(field)) return default_value;
  const auto& reflection = *message_->GetReflection();
  const FieldDescriptor* descriptor = Field(field);
  const uint64_t value = descriptor->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
                             ? reflection.GetUInt32(*message_, descriptor)
                             : reflection.GetUInt64(*message_, descriptor);
  if (value >= min && value <= max) return value;
  Error(diagnostics, field, fmt::format("{} is out of range (expected {} to {})", value, min, max));
  return default_value;
}

bool ProtoCursor::Flag(const char* field, bool default_value) const {
  return Has(field) ? message_->GetReflection()->GetBool(*message_, Field(field)) : default_value;
}

std::string ProtoCursor::Text(const char* field, const std::string& default_value) const {
  return Has(field) ? String(field, -1) : default_value;
}

std::string ProtoCursor::TextAt(const char* field, int index) const {
  return message_->GetReflection()->GetRepeatedString(*message_, Field(field), index);
}

std::string ProtoCursor::FilePath(const char* field, int index) const {
  const std::filesystem::path given(String(field, index));
  const auto place = file_->places.find(Path(field, index));
  const bool is_set = place != file_->places.end() && place->second.set_index >= 0;
  if (given.is_absolute() || is_set) return given.string();
  return (std::filesystem::path(file_->path).parent_path() / given).string();
}

}  // namespace railyard
