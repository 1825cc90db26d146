// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

namespace railyard {

// Writes indented JSON from the outside in. `key` names the member of the object that is open; it
// is nullptr in an array and for the outermost value.
class JsonWriter {
 public:
  JsonWriter() { writer_.SetIndent(' ', 2); }

  void StartObject(const char* key = nullptr);
  void EndObject() { writer_.EndObject(); }
  void StartArray(const char* key = nullptr);
  void EndArray() { writer_.EndArray(); }

  // Replaces bytes that are not UTF-8.
  void Text(const char* key, std::string_view value);
  // Writes null for nullopt.
  void Number(const char* key, std::optional<uint64_t> value);
  void Signed(const char* key, std::optional<int64_t> value);
  void Real(const char* key, std::optional<double> value);  // precondition: finite
  void Flag(const char* key, bool value);
  void Null(const char* key);

  // Precondition: every object and array has been ended.
  std::string Take();

 private:
  void Key(const char* key) {
    if (key != nullptr) writer_.Key(key);
  }

  rapidjson::StringBuffer buffer_;
  rapidjson::PrettyWriter<rapidjson::StringBuffer> writer_{buffer_};
};

}  // namespace railyard
