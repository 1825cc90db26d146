// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_field_reader.h"

#include <array>
#include <cstdint>

namespace railyard {
namespace {

// By character: the value of the hexadecimal digit; -1 for any other.
constexpr std::array<int8_t, 256> kHexDigitValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (int8_t i = 0; i < 10; ++i) values[static_cast<size_t>('0' + i)] = i;
  for (int8_t i = 0; i < 6; ++i) {
    values[static_cast<size_t>('a' + i)] = values[static_cast<size_t>('A' + i)] =
        static_cast<int8_t>(10 + i);
  }
  return values;
}();

int HexDigitValue(char c) { return kHexDigitValues[static_cast<unsigned char>(c)]; }

}  // namespace

std::string_view LogFieldReader::Token() {
  SkipBlanks();
  const size_t begin = position_;
  while (!AtEndOfValue()) ++position_;
  return text_.substr(begin, position_ - begin);
}

bool LogFieldReader::Pointer(uint64_t& value, bool may_be_glued) {
  if (Literal("(nil)")) {
    value = 0;
    return may_be_glued || AtEndOfValue();
  }
  if (!Literal("0x")) return false;
  constexpr size_t kDigitsMax = 16;
  constexpr size_t kGluedDigitsMax = 12;
  value = 0;
  size_t digits = 0;
  const std::string_view text = rest().substr(0, kDigitsMax);
  for (; digits < text.size(); ++digits) {
    const int digit = HexDigitValue(text[digits]);
    if (digit < 0) break;
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  const bool glued = position_ + digits < text_.size() && !IsBlank(text_[position_ + digits]);
  if (glued && digits > kGluedDigitsMax) {
    value >>= 4 * (digits - kGluedDigitsMax);
    digits = kGluedDigitsMax;
  }
  position_ += digits;
  return digits > 0 && (!glued || may_be_glued);
}

}  // namespace railyard
