// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/diagnostics/diagnostics.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "error";
}

// A finding with the notes that follow it: what is sorted as one.
struct Group {
  size_t begin = 0;
  size_t end = 0;
  size_t file_order = 0;
};

}  // namespace

std::string Finding::ToString() const {
  std::string text = Escaped(where.file);
  if (where.line > 0) text += fmt::format(":{}:{}", where.line, std::max(where.column, 1));
  if (!text.empty()) text += ": ";
  text += fmt::format("{}: ", SeverityName(severity));
  if (!field.empty()) text += fmt::format("{}: ", field);
  return text + what;
}

void Diagnostics::Error(SourceLocation where, std::string field, std::string what) {
  ++error_count_;
  Add(Severity::kError, std::move(where), std::move(field), std::move(what));
}

void Diagnostics::Warning(SourceLocation where, std::string field, std::string what) {
  Add(Severity::kWarning, std::move(where), std::move(field), std::move(what));
}

void Diagnostics::Note(SourceLocation where, std::string field, std::string what) {
  Add(Severity::kNote, std::move(where), std::move(field), std::move(what));
}

void Diagnostics::Add(Severity severity, SourceLocation where, std::string field,
                      std::string what) {
  if (findings_.size() == kFindingsMax) {
    ++findings_left_out_;
    return;
  }
  findings_.push_back({severity, std::move(where), std::move(field), std::move(what)});
}

std::string Diagnostics::ToString() const {
  std::vector<Group> groups;
  std::map<std::string_view, size_t> file_order;
  for (size_t i = 0; i < findings_.size(); ++i) {
    if (groups.empty() || findings_[i].severity != Severity::kNote) {
      const auto [file, added] = file_order.try_emplace(findings_[i].where.file, file_order.size());
      groups.push_back({.begin = i, .end = i, .file_order = file->second});
    }
    groups.back().end = i + 1;
  }
  std::stable_sort(groups.begin(), groups.end(), [this](const Group& a, const Group& b) {
    const SourceLocation& left = findings_[a.begin].where;
    const SourceLocation& right = findings_[b.begin].where;
    return std::tie(a.file_order, left.line, left.column) <
           std::tie(b.file_order, right.line, right.column);
  });
  std::string text;
  std::string previous;
  for (const Group& group : groups) {
    std::string lines;
    for (size_t i = group.begin; i < group.end; ++i) lines += findings_[i].ToString() + "\n";
    if (lines == previous) continue;
    text += lines;
    previous = std::move(lines);
  }
  if (findings_left_out_ > 0) text += fmt::format("and {} more\n", findings_left_out_);
  return text;
}

}  // namespace railyard
