// SPDX-License-Identifier: GPL-2.0-only
#include "traces/import/foreign_format.h"

namespace railyard {
namespace {

// A byte order mark, or text in ASCII with a NUL beside each of its first characters.
bool IsUtf16(std::string_view head) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return true;
  if (head.size() < 4) return false;
  const auto is_text = [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r'; };
  const auto is_text_at = [&](size_t i) {
    return is_text(head[i]) && is_text(head[i + 2]) && head[1 - i] == '\0' && head[3 - i] == '\0';
  };
  return is_text_at(0) || is_text_at(1);
}

// MSCCL's XML, with or without a declaration before it, or the JSON of MSCCL++.
bool IsAlgorithm(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  if (head.front() == '<') return holds("<algo ");
  return head.front() == '{' && holds("\"threadblocks\"") && holds("\"gpus\"");
}

}  // namespace

std::string WhyForeign(std::string_view head) {
  if (head.empty()) return "is empty (expected a capture)";
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) {
    return "is a ZIP archive (expected the files in it, or a tar archive of them)";
  }
  if (IsUtf16(head)) {
    return "is text in UTF-16 (expected UTF-8, which iconv -f UTF-16 -t UTF-8 makes of it)";
  }
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && IsAlgorithm(head.substr(first))) {
    return "is an algorithm of MSCCL, not a captured job (expected a capture; railyard schedule "
           "FILE "
           "--bytes N checks it, and workload.schedule runs it)";
  }
  return "";
}

}  // namespace railyard
