// SPDX-License-Identifier: GPL-2.0-only
// Collects the findings about wrong input with their places, so that all are shown at once.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/diagnostics/names.h"

namespace railyard {

// Names a place in a text. Lines and columns count from 1. Column 0 means a whole line; line 0
// means a path or an option without text.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

enum class Severity { kError, kWarning, kNote };

struct Finding {
  Severity severity = Severity::kError;
  SourceLocation where;
  std::string field;  // as the user would --set it, e.g. "faults[0].until"; may be empty
  std::string what;   // what is wrong, and in parentheses what would be right

  // Returns "FILE:LINE:COL: error: FIELD: WHAT", a whole line at its first column; ":LINE:COL" and
  // "FIELD: " are omitted if absent.
  std::string ToString() const;
};

// Keeps the first kFindingsMax findings, more than anybody reads, and counts the rest, so that a
// mistake that is repeated a million times needs no more memory.
class Diagnostics {
 public:
  static constexpr size_t kFindingsMax = 1'000;

  void Error(SourceLocation where, std::string field, std::string what);
  void Warning(SourceLocation where, std::string field, std::string what);
  void Note(SourceLocation where, std::string field, std::string what);

  bool HasErrors() const { return error_count_ > 0; }
  int error_count() const { return error_count_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // Returns one line per finding, files in the order of their first finding, within them by line
  // and column. Notes follow their finding, which is the last one before them; repeats are omitted.
  // A last line gives the number of findings that were not kept.
  std::string ToString() const;

 private:
  void Add(Severity severity, SourceLocation where, std::string field, std::string what);

  std::vector<Finding> findings_;
  int error_count_ = 0;
  size_t findings_left_out_ = 0;
};

// Is thrown when the environment fails (a file cannot be opened or written, no memory). It is
// caught once, in main, and printed as one line with exit status 1.
class EnvironmentError : public std::exception {
 public:
  explicit EnvironmentError(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace railyard
