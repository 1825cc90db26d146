// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/utf8.h"

#include <cstdint>

namespace railyard {

namespace {

// Bytes of the valid sequence at the start of `text` (RFC 3629: shortest form, no surrogates, at
// most U+10FFFF), 0 if there is none. Precondition: text is not empty.
size_t SequenceBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  size_t bytes = 0;
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    bytes = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    bytes = 3;
    if (lead == 0xE0) second_min = 0xA0;
    if (lead == 0xED) second_max = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    bytes = 4;
    if (lead == 0xF0) second_min = 0x90;
    if (lead == 0xF4) second_max = 0x8F;
  }
  if (bytes == 0 || text.size() < bytes) return 0;
  if (byte(1) < second_min || byte(1) > second_max) return 0;
  for (size_t i = 2; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

// Calls add(sequence) for every character, with U+FFFD for invalid bytes.
template <typename Add>
void ForEachCharacter(std::string_view text, Add add) {
  while (!text.empty()) {
    const size_t bytes = SequenceBytes(text);
    add(bytes == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
}

bool IsControl(std::string_view character) {
  const auto lead = static_cast<uint8_t>(character[0]);
  if (lead < 0x20 || lead == 0x7F) return true;
  // U+0080 to U+009F.
  return lead == 0xC2 && static_cast<uint8_t>(character[1]) < 0xA0;
}

}  // namespace

std::string ToValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  ForEachCharacter(text, [&](std::string_view character) { valid.append(character); });
  return valid;
}

std::string ToTerminalText(std::string_view text, size_t columns) {
  std::string shown;
  size_t length = 0;
  size_t cut_at = 0;  // bytes of `shown` that leave room for ".."
  ForEachCharacter(text, [&](std::string_view character) {
    if (length == columns - 2) cut_at = shown.size();
    ++length;
    if (length <= columns) shown.append(IsControl(character) ? "?" : character);
  });
  if (length > columns) shown.replace(cut_at, std::string::npos, "..");
  return shown;
}

}  // namespace railyard
