// SPDX-License-Identifier: GPL-2.0-only
// Builds terminal output of paragraphs, items and tables under titles.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/tables/text_table.h"

namespace railyard {

inline constexpr size_t kTerminalColumns = 100;

class TerminalText {
 public:
  void Section(std::string_view title);
  // Breaks lines at spaces so that they fit and replaces control characters.
  void Paragraph(std::string_view text);
  void Item(std::string_view text);
  void Detail(std::string_view text);  // below an item
  // Precondition: the table is not too wide.
  void Table(const TextTable& table);
  // Prints in which file a list continues; nothing if the list was shown in full.
  void AndMore(size_t left_out, std::string_view noun, std::string_view file = "results.sqlite");

  std::string Take();

 private:
  std::string text_;
};

}  // namespace railyard
