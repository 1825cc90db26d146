// SPDX-License-Identifier: GPL-2.0-only
// Reads the physical lines of a log with arbitrary bytes. The lines that it returns are bounded in
// length and free of NUL bytes (holes of sparse files), terminal escape sequences and carriage
// returns; '>', '<' and '&' that a log shipper has written as \\u003e and so on are themselves
// again.
#pragma once

#include <cstdint>
#include <string>

#include "traces/reading/input_stream.h"

namespace railyard {

class LogLineReader {
 public:
  LogLineReader(InputStream& stream, size_t line_bytes_max)
      : stream_(stream), line_bytes_max_(line_bytes_max) {}
  LogLineReader(const LogLineReader&) = delete;
  LogLineReader& operator=(const LogLineReader&) = delete;

  // Reads the next piece of text; returns false at the end of the file. A line longer than the
  // limit is read in several pieces, of which all except the first have is_continuation().
  bool Next();
  const std::string& text() const { return text_; }
  bool is_continuation() const { return is_continuation_; }

  // Returns the number of lines begun so far, which is the number of the current line.
  uint64_t lines_read() const { return lines_read_; }

 private:
  enum class Escape : uint8_t { kNone, kStarted, kControlSequence };

  // Appends the bytes of [begin, end) that are text.
  void Append(const char* begin, const char* end);

  InputStream& stream_;
  size_t line_bytes_max_;
  std::string text_;
  Escape escape_ = Escape::kNone;
  bool in_line_ = false;  // the current line has not ended yet
  bool is_continuation_ = false;
  uint64_t lines_read_ = 0;
};

}  // namespace railyard
