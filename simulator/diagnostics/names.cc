// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/names.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

namespace railyard {
namespace {

constexpr size_t kComparedLengthMax = 100;
constexpr size_t kListedNamesMax = 20;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost 1.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_previous(b.size() + 1);
  std::vector<size_t> previous(b.size() + 1);
  std::vector<size_t> current(b.size() + 1);
  std::iota(previous.begin(), previous.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      current[j] =
          std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
    }
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// Bytes of the UTF-8 sequence at the start of `text`, 0 if it is not one (overlong forms,
// surrogates and values beyond U+10FFFF are not).
size_t Utf8SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

bool IsControl(char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7f; }

// Appends the characters that begin in the first `bytes_max` bytes, and returns the number of bytes
// that they have.
size_t AppendEscaped(std::string_view text, size_t bytes_max, std::string& to) {
  size_t i = 0;
  while (i < text.size() && i < bytes_max) {
    const size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0 || IsControl(text[i])) {
      to += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[i]));
      i += 1;
      continue;
    }
    to += text.substr(i, length);
    i += length;
  }
  return i;
}

}  // namespace

std::string ClosestName(std::string_view text, const std::vector<std::string>& candidates) {
  if (text.empty() || text.size() > kComparedLengthMax) return {};
  const size_t limit = std::max<size_t>(1, text.size() / 3);
  size_t best_distance = limit + 1;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    const size_t difference = candidate.size() > text.size() ? candidate.size() - text.size()
                                                             : text.size() - candidate.size();
    if (difference >= best_distance) continue;
    const size_t distance = EditDistance(text, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? *best : std::string();
}

std::string DidYouMean(std::string_view text, const std::vector<std::string>& candidates) {
  const std::string closest = ClosestName(text, candidates);
  return closest.empty() ? std::string() : fmt::format(" (did you mean {}?)", Quote(closest));
}

std::string UnknownName(std::string_view what, std::string_view text,
                        const std::vector<std::string>& candidates) {
  std::string message = fmt::format("unknown {}{}{}", what, what.empty() ? "" : " ", Quote(text));
  const std::string suggestion = DidYouMean(text, candidates);
  if (!suggestion.empty()) {
    message += suggestion;
  } else if (!candidates.empty() && candidates.size() <= kListedNamesMax) {
    message += fmt::format(" (expected {})", JoinAlternatives(candidates));
  }
  return message;
}

std::string Counted(uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string JoinAlternatives(const std::vector<std::string>& names) {
  std::string joined;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) joined += i + 1 == names.size() ? " or " : ", ";
    joined += names[i];
  }
  return joined;
}

std::string Quote(std::string_view text, size_t bytes_max) {
  std::string quoted = "\"";
  const size_t taken = AppendEscaped(text, bytes_max, quoted);
  return quoted + (taken < text.size() ? "…\"" : "\"");
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  AppendEscaped(text, text.size(), escaped);
  return escaped;
}

size_t FindNonText(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (IsControl(c) && c != '\t' && c != '\n' && c != '\r') return i;
    const size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool IsPrintable(std::string_view text) {
  return FindNonText(text) == std::string_view::npos &&
         text.find_first_of("\t\r\n") == std::string_view::npos;
}

}  // namespace railyard
