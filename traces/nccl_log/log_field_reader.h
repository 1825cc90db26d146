// SPDX-License-Identifier: GPL-2.0-only
// Reads words, numbers and pointers from the text of a log line, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "traces/reading/number.h"

namespace railyard {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
inline bool IsNameCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Functions that read a value return false if there is none; position() is then where the text
// ceases to be one.
class LogFieldReader {
 public:
  explicit LogFieldReader(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }

  void SkipBlanks();
  bool Literal(std::string_view literal);
  // Reads `word` and the blanks around it.
  bool Word(std::string_view word);
  // Returns the text before the next blank; empty at the end.
  std::string_view Token();
  template <typename Integer>
  bool Number(Integer& value, int base = 10) {
    size_t end = position_;
    if (std::is_signed_v<Integer> && end < text_.size() && text_[end] == '-') ++end;
    while (end < text_.size() && (base == 16 ? IsHexDigit(text_[end]) : IsDigit(text_[end]))) ++end;
    const bool valid = ParseNumber(text_.substr(position_, end - position_), value, base);
    position_ = end;
    return valid && AtEndOfValue();
  }
  // Reads `0x…` or `(nil)`, as %p prints it. The last field of a line may run into the next line's
  // first character; user-space pointers have at most 12 digits.
  bool Pointer(uint64_t& value, bool may_be_glued = false);

 private:
  bool AtEndOfValue() const { return position_ == text_.size() || IsBlank(text_[position_]); }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace railyard
