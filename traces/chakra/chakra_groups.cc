// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_groups.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include "simulator/diagnostics/names.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kBytesMax = size_t{256} << 20;

// The text without white space and with "0" for any number, as far as that is needed to tell.
std::string ShapeOf(std::string_view head) {
  std::string shape;
  bool in_text = false;
  for (const char c : head) {
    if (shape.size() == 8) break;
    if (c == '"') {
      in_text = !in_text;
      if (!in_text) shape += '"';
    } else if (in_text || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      continue;
    } else if (c >= '0' && c <= '9') {
      if (shape.empty() || shape.back() != '0') shape += '0';
    } else {
      shape += c;
    }
  }
  return shape;
}

}  // namespace

bool LooksLikeChakraGroups(std::string_view head) {
  const std::string shape = ShapeOf(head);
  return shape.starts_with("{\":[0,") || shape.starts_with("{\":[0]");
}

bool ReadChakraGroups(InputStream& stream, ChakraGroups& groups, Diagnostics& diagnostics) {
  const auto error = [&](const std::string& what) {
    diagnostics.Error({.file = stream.name()}, "",
                      what + " (expected lists of ranks by group, {\"1\": [0, 1]})");
    return false;
  };
  std::string text;
  for (std::string_view next = stream.Peek(); !next.empty(); next = stream.Peek()) {
    text.append(next);
    stream.Skip(next.size());
    if (text.size() > kBytesMax) return error(fmt::format("is larger than {} bytes", kBytesMax));
  }
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    return error(fmt::format("byte {}: {}", document.GetErrorOffset(),
                             rapidjson::GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) return error("is no object");
  for (const auto& member : std::as_const(document).GetObject()) {
    const std::string name(member.name.GetString(), member.name.GetStringLength());
    std::vector<uint32_t> ranks;
    if (!member.value.IsArray() || member.value.Empty()) {
      return error(fmt::format("group {} is no list of ranks", Quote(name)));
    }
    for (const auto& rank : member.value.GetArray()) {
      if (!rank.IsUint() || rank.GetUint() >= kTraceRanksMax) {
        return error(fmt::format("group {} has a rank out of range", Quote(name)));
      }
      ranks.push_back(rank.GetUint());
    }
    if (!groups.emplace(name, std::move(ranks)).second) {
      return error(fmt::format("group {} is there twice", Quote(name)));
    }
  }
  return true;
}

}  // namespace railyard
