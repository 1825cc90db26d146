// SPDX-License-Identifier: GPL-2.0-only
// Holds a value of JSON or of another self-describing format, for small records.
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
  std::string text = {};               // of a text, or of a number as it is written
  std::vector<Value> items = {};       // of a list; of a map, by `keys`
  std::vector<std::string> keys = {};  // of a map

  // Returns the value of a key; nullptr if this is not a map or has no such key.
  const Value* Find(std::string_view key) const;
  bool IsList() const { return kind == Kind::kList; }
  bool IsMap() const { return kind == Kind::kMap; }
  // Returns the number if this is a number that fits, or text that consists of one.
  std::optional<uint64_t> Unsigned() const;
  std::optional<int64_t> Signed() const;
  // Returns the text; empty unless this is a text or a number.
  std::string_view Text() const { return text; }

  // Returns Unsigned() of the value that Find() returns.
  std::optional<uint64_t> UnsignedOf(std::string_view key) const;
  std::string TextOf(std::string_view key) const;
};

// The limit on the size of a record, estimated in bytes of memory for its values and characters.
inline constexpr size_t kValueBytesMax = size_t{64} << 20;

// Parses the JSON value at the position of `stream`; nullopt with a finding.
std::optional<Value> ReadJsonValue(InputStream& stream, Diagnostics& diagnostics);
// Parses the text; nullopt if it is not JSON.
std::optional<Value> ParseJson(std::string_view text);

// Parses the JSON object in `stream` and passes it to `visit` piece by piece: each member by its
// key, except that the list `list_key` is passed item by item, each with the line where it ends.
// Returns false with a finding if the text is not an object, or if more follows it.
bool ForEachJsonItem(
    InputStream& stream, std::string_view list_key,
    const std::function<void(std::string_view key, Value value, uint64_t line)>& visit,
    Diagnostics& diagnostics);

}  // namespace railyard
