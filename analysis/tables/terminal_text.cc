// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/tables/terminal_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analysis/tables/figure_text.h"
#include "simulator/diagnostics/utf8.h"

namespace railyard {
namespace {

// One paragraph: breaks lines at spaces so that they fit, indents all but the first.
std::string Wrap(std::string_view text, std::string_view first_indent, std::string_view indent) {
  std::string wrapped;
  std::string line(first_indent);
  size_t begun = line.size();
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string word =
        ToTerminalText(text.substr(0, space), kTerminalColumns - indent.size());
    text.remove_prefix(std::min(space + 1, text.size()));
    if (line.size() > begun && line.size() + 1 + word.size() > kTerminalColumns) {
      wrapped += line + "\n";
      line = indent;
      begun = line.size();
    }
    if (line.size() > begun) line += ' ';
    line += word;
  }
  return wrapped + line + "\n";
}

}  // namespace

void TerminalText::Section(std::string_view title) { text_ += fmt::format("\n{}\n", title); }

void TerminalText::Paragraph(std::string_view text) { text_ += Wrap(text, "", "    "); }

void TerminalText::Item(std::string_view text) { text_ += Wrap(text, "  ", "    "); }

void TerminalText::Detail(std::string_view text) { text_ += Wrap(text, "    ", "      "); }

void TerminalText::Table(const TextTable& table) { text_ += table.ToString(); }

void TerminalText::AndMore(size_t left_out, std::string_view noun, std::string_view file) {
  if (left_out == 0) return;
  Item(fmt::format("and {} more; all are in {}", PluralText(left_out, noun), file));
}

std::string TerminalText::Take() { return std::move(text_); }

}  // namespace railyard
