// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/log_line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr char kEscapeCharacter = '\x1b';

}  // namespace

LogLineReader::LogLineReader(std::string path, size_t line_bytes_max)
    : path_(std::move(path)), line_bytes_max_(line_bytes_max), buffer_(kBufferBytes) {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw EnvironmentError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  }
}

LogLineReader::~LogLineReader() { close(descriptor_); }

bool LogLineReader::Fill() {
  ssize_t bytes = 0;
  do {
    bytes = read(descriptor_, buffer_.data(), buffer_.size());
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) {
    throw EnvironmentError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  }
  buffer_begin_ = 0;
  buffer_end_ = static_cast<size_t>(bytes);
  bytes_read_ += static_cast<uint64_t>(bytes);
  return bytes > 0;
}

bool LogLineReader::Next() {
  text_.clear();
  is_continuation_ = in_line_;
  for (;;) {
    if (buffer_begin_ == buffer_end_ && !Fill()) {
      // A last line without a line break counts as a line; a piece without text ends the file.
      return std::exchange(in_line_, false) && !text_.empty();
    }
    if (!in_line_) {
      in_line_ = true;
      escape_ = Escape::kNone;
      ++lines_read_;
    }
    const char* begin = buffer_.data() + buffer_begin_;
    const size_t room = line_bytes_max_ - text_.size();
    const size_t available = std::min(buffer_end_ - buffer_begin_, room);
    const void* line_break = std::memchr(begin, '\n', available);
    const char* end =
        line_break != nullptr ? static_cast<const char*>(line_break) : begin + available;
    Append(begin, end);
    buffer_begin_ += static_cast<size_t>(end - begin);
    if (line_break != nullptr) {
      ++buffer_begin_;
      in_line_ = false;
      return true;
    }
    if (text_.size() >= line_bytes_max_) return true;
  }
}

void LogLineReader::Append(const char* begin, const char* end) {
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
