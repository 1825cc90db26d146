// SPDX-License-Identifier: GPL-2.0-only
// Collects the findings about one text, up to kTextProtoFindingsMax.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

class TextProtoFindings {
 public:
  // Both must outlive this.
  TextProtoFindings(const std::function<SourceLocation(const FieldPlace&)>& locate,
                    Diagnostics& diagnostics)
      : locate_(locate), diagnostics_(diagnostics) {}

  bool Full() const { return count_ >= kTextProtoFindingsMax; }
  bool has_syntax_error() const { return has_syntax_error_; }

  void Error(const FieldPlace& place, std::string field, std::string what) {
    if (Full()) return;
    diagnostics_.Error(locate_(place), std::move(field), std::move(what));
    if (++count_ == kTextProtoFindingsMax) {
      diagnostics_.Error(locate_(place), "", "too many mistakes, the rest is not looked at");
    }
  }
  // Reports an error after which the text cannot be read, not even in part.
  void Unreadable(const FieldPlace& place, std::string field, std::string what) {
    has_syntax_error_ = true;
    Error(place, std::move(field), std::move(what));
  }
  // Reports a syntax error, at most one per line, because the rest of the line would only repeat
  // it.
  void SyntaxError(const FieldPlace& place, std::string what) {
    if (place.line == syntax_error_line_) return;
    syntax_error_line_ = place.line;
    Unreadable(place, "", std::move(what));
  }

 private:
  const std::function<SourceLocation(const FieldPlace&)>& locate_;
  Diagnostics& diagnostics_;
  int count_ = 0;
  int syntax_error_line_ = 0;
  bool has_syntax_error_ = false;
};

}  // namespace railyard
