// SPDX-License-Identifier: GPL-2.0-only
// Reads JSON as a stream in bounded memory: only requested values are kept, and nesting and strings
// are limited.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_stream.h"

namespace railyard {

inline constexpr size_t kJsonDepthMax = 64;
inline constexpr size_t kJsonStringBytesMax = size_t{16} << 20;

// Adapts an InputStream to RapidJSON and counts lines.
class JsonBytes {
 public:
  using Ch = char;

  explicit JsonBytes(InputStream& stream) : stream_(stream) { Refill(); }
  ~JsonBytes() { stream_.Skip(static_cast<size_t>(at_ - begin_)); }
  JsonBytes(const JsonBytes&) = delete;
  JsonBytes& operator=(const JsonBytes&) = delete;

  Ch Peek() const { return *at_; }
  Ch Take() {
    const Ch c = *at_;
    if (at_ != end_ && ++at_ == end_) Refill();
    return c;
  }
  void SkipWhitespace() {
    for (;;) {
      while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
      if (at_ != end_ || is_at_end_) return;
      Refill();
    }
  }
  size_t Tell() const { return offset_ + static_cast<size_t>(at_ - begin_); }
  bool IsAtEnd() const { return is_at_end_; }

  // Returns the number of the current line, from 1.
  uint64_t Line() {
    line_ += static_cast<uint64_t>(std::count(counted_, at_, '\n'));
    counted_ = at_;
    return line_;
  }
  // Marks the end of a value; strings are measured from here on.
  void Mark() { mark_ = Tell(); }
  bool is_too_long() const { return is_too_long_; }
  // Returns whether the bytes end because the stream has failed.
  bool has_failed() const { return !stream_.failure().empty(); }

  // RapidJSON requires these of any stream, but never writes to one that it parses.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

 private:
  // Refills the buffer. It is needed once per many thousand characters; inlined, it would slow down
  // the others.
  [[gnu::noinline]] void Refill() {
    line_ += static_cast<uint64_t>(std::count(counted_, end_, '\n'));
    offset_ += static_cast<size_t>(end_ - begin_);
    stream_.Skip(static_cast<size_t>(end_ - begin_));
    is_too_long_ = offset_ - mark_ > kJsonStringBytesMax;
    const std::string_view next = is_too_long_ ? std::string_view("") : stream_.Peek();
    is_at_end_ = next.empty();
    begin_ = at_ = counted_ = next.data();
    end_ = begin_ + next.size();
  }

  InputStream& stream_;
  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;      // is followed by a '\0' (InputStream::Peek)
  const char* counted_ = nullptr;  // lines up to here are in line_
  size_t offset_ = 0;              // of begin_
  size_t mark_ = 0;
  uint64_t line_ = 1;
  bool is_at_end_ = false;
  bool is_too_long_ = false;
};

// Replaces RapidJSON's function, which reads one character at a time.
inline void SkipWhitespace(JsonBytes& bytes) { bytes.SkipWhitespace(); }

// Feeds one JSON value of `bytes` to `handler`, which needs the members for the events it handles:
//
//   void Key(std::string_view), void Text(std::string_view), void Number(std::string_view),
//   void Open(bool is_object), void Close(bool is_object), void Bool(bool), void Other() (null).
//
// Numbers are passed as text, including NaN and Infinity. Returns false with a finding if the text
// is not a JSON value or exceeds a limit, and without one if the stream has failed, which
// InputFiles reports; `handler` has then received everything before it.
template <typename Handler>
class JsonEvents {
 public:
  JsonEvents(JsonBytes& bytes, Handler& handler) : bytes_(bytes), handler_(handler) {}

  bool Parse(const std::string& file, Diagnostics& diagnostics) {
    constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                                rapidjson::kParseNumbersAsStringsFlag |
                                rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseNanAndInfFlag;
    rapidjson::Reader reader;
    depth_ = 0;
    reader.Parse<kFlags>(bytes_, *this);
    if (!reader.HasParseError()) return true;
    if (bytes_.has_failed()) return false;
    diagnostics.Error({file, static_cast<int>(std::min<uint64_t>(bytes_.Line(), INT32_MAX))}, "",
                      Problem(reader.GetParseErrorCode()));
    return false;
  }

  // These are callbacks of RapidJSON.
  bool Null() {
    return Hear([&] { handler_.Other(); });
  }
  bool Bool(bool value) {
    return Hear([&] { handler_.Bool(value); });
  }
  bool Int(int) { return Null(); }
  bool Uint(unsigned) { return Null(); }
  bool Int64(int64_t) { return Null(); }
  bool Uint64(uint64_t) { return Null(); }
  bool Double(double) { return Null(); }  // NaN and Infinity
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) {
    return Hear([&] { handler_.Number({text, size}); });
  }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return Hear([&] { handler_.Text({text, size}); });
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    return Hear([&] { handler_.Key({text, size}); });
  }
  bool StartObject() { return Open(true); }
  bool EndObject(rapidjson::SizeType) { return Close(true); }
  bool StartArray() { return Open(false); }
  bool EndArray(rapidjson::SizeType) { return Close(false); }

 private:
  template <typename Call>
  bool Hear(Call call) {
    bytes_.Mark();
    call();
    return true;
  }
  bool Open(bool is_object) {
    if (++depth_ > kJsonDepthMax) return false;
    return Hear([&] { handler_.Open(is_object); });
  }
  bool Close(bool is_object) {
    --depth_;
    return Hear([&] { handler_.Close(is_object); });
  }

  std::string Problem(rapidjson::ParseErrorCode code) const {
    if (depth_ > kJsonDepthMax) {
      return fmt::format("is nested too deeply (expected at most {} levels)", kJsonDepthMax);
    }
    if (bytes_.is_too_long()) {
      return fmt::format("holds a string, a number or blanks of more than {} bytes",
                         kJsonStringBytesMax);
    }
    return fmt::format("{}: {} (expected a whole JSON value)",
                       bytes_.IsAtEnd() ? "the file ends early" : "is no JSON",
                       rapidjson::GetParseError_En(code));
  }

  JsonBytes& bytes_;
  Handler& handler_;
  size_t depth_ = 0;
};

// Returns true if nothing but blanks follows the value that was parsed; else the first byte of what
// follows is in an error.
inline bool EndsHere(JsonBytes& bytes, const std::string& file, Diagnostics& diagnostics) {
  bytes.SkipWhitespace();
  if (bytes.IsAtEnd()) return true;
  diagnostics.Error({file, static_cast<int>(std::min<uint64_t>(bytes.Line(), INT32_MAX))}, "",
                    fmt::format("byte {}: text follows the JSON document (expected one in a file)",
                                bytes.Tell()));
  return false;
}

}  // namespace railyard
