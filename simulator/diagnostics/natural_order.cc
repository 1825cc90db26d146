// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/natural_order.h"

#include <cstddef>

namespace railyard {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view DigitsAt(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

bool NaturalLess::operator()(std::string_view a, std::string_view b) const {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    std::string_view number_a = DigitsAt(a, i);
    std::string_view number_b = DigitsAt(b, j);
    i += number_a.size();
    j += number_b.size();
    while (number_a.starts_with('0')) number_a.remove_prefix(1);
    while (number_b.starts_with('0')) number_b.remove_prefix(1);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // "01" and "1" differ after all
}

}  // namespace railyard
