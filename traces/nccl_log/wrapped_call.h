// SPDX-License-Identifier: GPL-2.0-only
// A call whose line a terminal or a log shipper broke into several. They are joined where exactly
// one reading, with or without a blank at the break, is a call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"

namespace railyard {

class WrappedCall {
 public:
  enum class Appended : uint8_t { kNothing, kCallGoesOn, kCallIsWhole };

  // Whether the line, of which these are all records, ends within a call.
  static bool MayBeginIn(std::string_view line, const std::vector<LogRecord>& records);

  void Begin(const std::string& line);
  // Joins the next line, unless it says something by itself or its reading is not the only one.
  Appended Append(std::string_view line);
  void Clear() { text_.clear(); }

  const std::string& text() const { return text_; }  // empty: there is no such call

 private:
  static constexpr int kLinesMax = 8;

  std::string text_;
  int lines_ = 0;
};

}  // namespace railyard
