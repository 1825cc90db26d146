// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_field_reader.h"

namespace railyard {
namespace {

// -1 for a character that is none.
int HexDigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

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
