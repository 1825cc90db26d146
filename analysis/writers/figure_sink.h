// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railyard {

// Takes figures in objects and arrays, from the outside in. `key` names the member of the object
// that is open; it is nullptr in an array and for the outermost value. An implementation writes the
// figures, or picks some of them.
class FigureSink {
 public:
  FigureSink() = default;
  FigureSink(const FigureSink&) = delete;
  FigureSink& operator=(const FigureSink&) = delete;
  virtual ~FigureSink() = default;

  virtual void StartObject(const char* key) = 0;
  virtual void EndObject() = 0;
  virtual void StartArray(const char* key) = 0;
  virtual void EndArray() = 0;
  void StartObject() { StartObject(nullptr); }
  void StartArray() { StartArray(nullptr); }

  // `value` is valid during the call.
  virtual void Text(const char* key, std::string_view value) = 0;
  // A number that does not exist is nullopt.
  virtual void Number(const char* key, std::optional<uint64_t> value) = 0;
  virtual void Signed(const char* key, std::optional<int64_t> value) = 0;
  virtual void Real(const char* key, std::optional<double> value) = 0;  // precondition: finite
  virtual void Flag(const char* key, bool value) = 0;
  // Stands for an object that does not exist.
  virtual void Null(const char* key) = 0;
};

}  // namespace railyard
