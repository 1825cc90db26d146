// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/json_writer.h"

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/utf8.h"

namespace railyard {

void JsonWriter::StartObject(const char* key) {
  Key(key);
  writer_.StartObject();
}

void JsonWriter::StartArray(const char* key) {
  Key(key);
  writer_.StartArray();
}

void JsonWriter::Text(const char* key, std::string_view value) {
  Key(key);
  const std::string valid = ToValidUtf8(value);
  writer_.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void JsonWriter::Number(const char* key, std::optional<uint64_t> value) {
  if (!value) return Null(key);
  Key(key);
  writer_.Uint64(*value);
}

void JsonWriter::Signed(const char* key, std::optional<int64_t> value) {
  if (!value) return Null(key);
  Key(key);
  writer_.Int64(*value);
}

void JsonWriter::Real(const char* key, std::optional<double> value) {
  if (!value) return Null(key);
  Key(key);
  SIM_CHECK(writer_.Double(*value), "not a finite number");
}

void JsonWriter::Flag(const char* key, bool value) {
  Key(key);
  writer_.Bool(value);
}

void JsonWriter::Null(const char* key) {
  Key(key);
  writer_.Null();
}

std::string JsonWriter::Take() {
  SIM_CHECK(writer_.IsComplete(), "what is written is not one whole value");
  return std::string(buffer_.GetString(), buffer_.GetSize()) + "\n";
}

}  // namespace railyard
