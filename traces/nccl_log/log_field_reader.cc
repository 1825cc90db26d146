// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_field_reader.h"

namespace railyard {

void LogFieldReader::SkipBlanks() {
  while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
}

bool LogFieldReader::Literal(std::string_view literal) {
  if (!rest().starts_with(literal)) return false;
  position_ += literal.size();
  return true;
}

bool LogFieldReader::Word(std::string_view word) {
  const size_t before = position_;
  SkipBlanks();
  if (Literal(word) && AtEndOfValue()) {
    SkipBlanks();
    return true;
  }
  position_ = before;
  return false;
}

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
  size_t end = position_;
  while (end < text_.size() && end - position_ < 16 && IsHexDigit(text_[end])) ++end;
  const bool glued = end < text_.size() && !IsBlank(text_[end]);
  if (glued && end - position_ > 12) end = position_ + 12;
  const bool valid = ParseNumber(text_.substr(position_, end - position_), value, 16);
  position_ = end;
  return valid && (!glued || may_be_glued);
}

}  // namespace railyard
