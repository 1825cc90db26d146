// SPDX-License-Identifier: GPL-2.0-only
// Joins the lines into which a terminal or a log shipper broke the line of a call. They are joined
// if exactly one reading, with or without a blank at the break, is a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"

namespace railyard {

class WrappedCall {
 public:
  enum class Appended : uint8_t { kNothing, kCallGoesOn, kCallIsWhole };

  // Returns whether the line, of which `records` are all records, ends within a call.
  static bool MayBeginIn(std::string_view line, const std::vector<LogRecord>& records);

  void Begin(const std::string& line);
  // Joins the next line, unless it contains a record itself or its reading is ambiguous.
  Appended Append(std::string_view line);
  void Clear() { text_.clear(); }

  const std::string& text() const { return text_; }  // empty if there is no such call

 private:
  static constexpr int kLinesMax = 8;

  std::string text_;
  int lines_ = 0;
};

}  // namespace railyard
