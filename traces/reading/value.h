// SPDX-License-Identifier: GPL-2.0-only
// A value of JSON or of another self-describing format, for records that are small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_stream.h"

namespace railyard {

struct Value {
  enum class Kind : uint8_t { kNone, kTrue, kFalse, kNumber, kText, kList, kMap };

  Kind kind = Kind::kNone;
  std::string text = {};               // of a number, as it is written, or of a text
  std::vector<Value> items = {};       // of a list; of a map, by `keys`
  std::vector<std::string> keys = {};  // of a map

  // The value of a key; nullptr where this is no map or has no such key.
  const Value* Find(std::string_view key) const;
  bool IsList() const { return kind == Kind::kList; }
  bool IsMap() const { return kind == Kind::kMap; }
  // The number, if it is one that fits; text that is such a number counts.
  std::optional<uint64_t> Unsigned() const;
  std::optional<int64_t> Signed() const;
  // The text; empty for all but texts and numbers.
  std::string_view Text() const { return text; }

  // Of a key, in one step.
  std::optional<uint64_t> UnsignedOf(std::string_view key) const;
  std::string TextOf(std::string_view key) const;
};

// A record may be of so many values and characters, estimated in bytes of memory.
inline constexpr size_t kValueBytesMax = size_t{64} << 20;

// Parses one JSON value from where `stream` stands; nullopt with a finding.
std::optional<Value> ReadJsonValue(InputStream& stream, Diagnostics& diagnostics);
// The same from text; nullopt where it is none.
std::optional<Value> ParseJson(std::string_view text);

// Parses the JSON object in `stream` and shows it to `visit` piece by piece: each member by its
// key, but of the list `list_key` each item by itself, with the line where it ends. False with a
// finding where the text is no object.
bool ForEachJsonItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t line)>& visit,
    Diagnostics& diagnostics);

}  // namespace railyard
