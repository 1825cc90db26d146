// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "analysis/writers/figure_sink.h"

namespace railyard {

// Writes indented JSON; a value that does not exist is null.
class JsonWriter final : public FigureSink {
 public:
  JsonWriter() { writer_.SetIndent(' ', 2); }

  using FigureSink::StartArray;
  using FigureSink::StartObject;
  void StartObject(const char* key) override;
  void EndObject() override { writer_.EndObject(); }
  void StartArray(const char* key) override;
  void EndArray() override { writer_.EndArray(); }

  // Replaces bytes that are not UTF-8.
  void Text(const char* key, std::string_view value) override;
  void Number(const char* key, std::optional<uint64_t> value) override;
  void Signed(const char* key, std::optional<int64_t> value) override;
  void Real(const char* key, std::optional<double> value) override;
  void Flag(const char* key, bool value) override;
  void Null(const char* key) override;

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
