// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_line_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace railyard {
namespace {

constexpr char kEscapeCharacter = '\x1b';

// Puts back the characters that Docker's driver json-file escapes (moby:
// daemon/logger/jsonfilelog/jsonlog/jsonlogbytes.go), as Go's encoding/json does.
void UndoEscapesOfJson(std::string& text) {
  constexpr std::pair<std::string_view, char> kEscapes[] = {
      {"\\u003e", '>'}, {"\\u003c", '<'}, {"\\u0026", '&'}};
  for (const auto& [escape, character] : kEscapes) {
    for (size_t at = text.find(escape); at != std::string::npos; at = text.find(escape, at)) {
      text.replace(at, escape.size(), 1, character);
      ++at;
    }
  }
}

}  // namespace

bool LogLineReader::Next() {
  text_.clear();
  is_continuation_ = in_line_;
  for (;;) {
    const std::string_view next = stream_.Peek();
    if (next.empty()) {
      // A last line without a line break counts as a line; a piece without text ends the file.
      return std::exchange(in_line_, false) && !text_.empty();
    }
    if (!in_line_) {
      in_line_ = true;
      escape_ = Escape::kNone;
      ++lines_read_;
    }
    const char* begin = next.data();
    const size_t room = line_bytes_max_ - text_.size();
    const size_t available = std::min(next.size(), room);
    const void* line_break = std::memchr(begin, '\n', available);
    const char* end =
        line_break != nullptr ? static_cast<const char*>(line_break) : begin + available;
    Append(begin, end);
    stream_.Skip(static_cast<size_t>(end - begin) + (line_break != nullptr ? 1 : 0));
    if (line_break == nullptr && text_.size() < line_bytes_max_) continue;
    if (line_break != nullptr) in_line_ = false;
    if (text_.find("\\u00") != std::string::npos) UndoEscapesOfJson(text_);
    return true;
  }
}

void LogLineReader::Append(const char* begin, const char* end) {
  const auto holds = [&](char c) {
    return std::memchr(begin, c, static_cast<size_t>(end - begin)) != nullptr;
  };
  if (escape_ == Escape::kNone && !holds(kEscapeCharacter) && !holds('\r') && !holds('\0')) {
    text_.append(begin, end);
    return;
  }
  for (const char* at = begin; at != end; ++at) {
    const char c = *at;
    if (escape_ == Escape::kStarted) {
      // ECMA-48: `ESC [` starts a control sequence; after ESC and any intermediate bytes, one more
      // character ends the escape.
      if (c == '[') {
        escape_ = Escape::kControlSequence;
      } else if (c < ' ' || c > '/') {
        escape_ = Escape::kNone;
      }
    } else if (escape_ == Escape::kControlSequence) {
      // It ends with its final byte.
      if (c >= '@' && c <= '~') escape_ = Escape::kNone;
    } else if (c == kEscapeCharacter) {
      escape_ = Escape::kStarted;
    } else if (c == '\r') {
      text_.push_back(' ');
    } else if (c != '\0') {
      text_.push_back(c);
    }
  }
}

}  // namespace railyard
