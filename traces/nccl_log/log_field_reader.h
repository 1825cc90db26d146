// SPDX-License-Identifier: GPL-2.0-only
// Reads words, numbers and pointers from the text of a log line, one after the other.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>

namespace railyard {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
inline bool IsNameCharacter(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Reads the fields. Functions that read a value return false if there is none; position() is then
// where the text stops being one.
class LogFieldReader {
 public:
  explicit LogFieldReader(std::string_view text) : text_(text) {}

  size_t position() const { return position_; }
  std::string_view rest() const { return text_.substr(position_); }

  void SkipBlanks() {
    while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
  }
  bool Literal(std::string_view literal) {
    if (text_.size() - position_ < literal.size() ||
        std::memcmp(text_.data() + position_, literal.data(), literal.size()) != 0) {
      return false;
    }
    position_ += literal.size();
    return true;
  }
  // Does the same for a text whose length is known at compile time, which needs no call.
  template <size_t kBytes>
  bool Literal(const char (&literal)[kBytes]) {
    if (text_.size() - position_ < kBytes - 1 ||
        std::memcmp(text_.data() + position_, literal, kBytes - 1) != 0) {
      return false;
    }
    position_ += kBytes - 1;
    return true;
  }
  // Reads `word` and the blanks around it.
  template <size_t kBytes>
  bool Word(const char (&word)[kBytes]) {
    const size_t before = position_;
    SkipBlanks();
    if (Literal(word) && AtEndOfValue()) {
      SkipBlanks();
      return true;
    }
    position_ = before;
    return false;
  }
  // Returns the text before the next blank; empty at the end.
  std::string_view Token();
  template <typename Integer>
  bool Number(Integer& value, int base = 10) {
    const char* const begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, base);
    position_ += static_cast<size_t>(end - begin);
    return error == std::errc() && AtEndOfValue();
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
