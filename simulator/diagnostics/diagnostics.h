// SPDX-License-Identifier: GPL-2.0-only
// Input is wrong: every finding is collected, with its place, and all are shown at once.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/diagnostics/names.h"

namespace railyard {

// Lines and columns count from 1; column 0: a whole line; line 0: a path or an option, no text.
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

  // "FILE:LINE:COL: error: FIELD: WHAT", a whole line at its first column; without ":LINE:COL" or
  // "FIELD: " where there is none.
  std::string ToString() const;
};

// Keeps the first kFindingsMax findings, which is more than anybody reads, and counts the rest:
// what is wrong a million times over must not cost memory as often.
class Diagnostics {
 public:
  static constexpr size_t kFindingsMax = 1'000;

  void Error(SourceLocation where, std::string field, std::string what);
  void Warning(SourceLocation where, std::string field, std::string what);
  void Note(SourceLocation where, std::string field, std::string what);

  bool HasErrors() const { return error_count_ > 0; }
  int error_count() const { return error_count_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // One line per finding, files in the order of their first finding, within them by line and
  // column. Notes follow the finding they belong to, the last one before them; repeats are left
  // out. A last line says how many more there were than are kept.
  std::string ToString() const;

 private:
  void Add(Severity severity, SourceLocation where, std::string field, std::string what);

  std::vector<Finding> findings_;
  int error_count_ = 0;
  size_t findings_left_out_ = 0;
};

// The environment failed (a file cannot be opened or written, no memory): caught once, in main,
// printed as one line, exit 1.
class EnvironmentError : public std::exception {
 public:
  explicit EnvironmentError(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

}  // namespace railyard
