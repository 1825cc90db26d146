// SPDX-License-Identifier: GPL-2.0-only
// Writes the line on standard error by which a long command reports its progress. On a terminal it
// is one line that changes in place; elsewhere each report is a new line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace railyard {

class StatusLine {
 public:
  // `in_place` states whether a line on a terminal may change in place.
  explicit StatusLine(bool in_place = true);

  bool is_in_place() const { return is_in_place_; }
  // Prints the parts after one another, the most important first. In place, parts that do not fit
  // into the terminal's width are left out, because a line that wraps could not be replaced.
  void Show(const std::vector<std::string>& parts);
  // Removes the line from a terminal.
  void Clear();

 private:
  const bool is_in_place_;
  bool is_shown_ = false;
};

// Returns the parts that fit into `columns` after one another, at one column per byte. A part that
// does not fit is left out, but the first is cut to fit.
std::string FitParts(const std::vector<std::string>& parts, size_t columns);

}  // namespace railyard
