// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <unordered_map>

namespace railyard {

// Knows the lines of a JSON text's objects and lists, and of the root's members, by their places:
// "gpus[0].threadblocks[1]".
class JsonLines {
 public:
  // The text may be no JSON: places beyond the error are unknown.
  explicit JsonLines(const std::string& text);

  // Returns the line of that place, or of the innermost known place around it; 1 at least.
  int LineOf(std::string place) const;

 private:
  std::unordered_map<std::string, int> lines_;
};

}  // namespace railyard
