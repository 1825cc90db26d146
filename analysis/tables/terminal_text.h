// SPDX-License-Identifier: GPL-2.0-only
// Paragraphs, items and tables under titles, for a terminal.
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
  // Lines break at spaces so that they fit; control characters are replaced.
  void Paragraph(std::string_view text);
  void Item(std::string_view text);
  void Detail(std::string_view text);  // below an item
  // It must fit.
  void Table(const TextTable& table);
  // That a list goes on in a file. Nothing if it was shown whole.
  void AndMore(size_t left_out, std::string_view noun, std::string_view file = "results.sqlite");

  std::string Take();

 private:
  std::string text_;
};

}  // namespace railyard
