// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/import_report.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "simulator/files/output_file.h"

namespace railyard {
namespace {

template <typename Member>
uint64_t SumOverFiles(const std::vector<ImportedFile>& files, Member member) {
  uint64_t sum = 0;
  for (const ImportedFile& file : files) sum += file.*member;
  return sum;
}

void AppendSentences(std::string_view title, const std::vector<std::string>& sentences,
                     std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}:{}\n", title, sentences.empty() ? " nothing" : "");
  for (const std::string& sentence : sentences) {
    fmt::format_to(std::back_inserter(out), "  {}\n", sentence);
  }
}

}  // namespace

std::string_view CallDropReasonName(CallDropReason reason) {
  switch (reason) {
    case CallDropReason::kTruncatedLine:
      return "truncated line";
    case CallDropReason::kLineTooLong:
      return "line too long";
    case CallDropReason::kUnnamedOperation:
      return "operation not named (NCCL up to 2.3.5)";
    case CallDropReason::kUnsupportedKind:
      return "unsupported kind";
    case CallDropReason::kUnknownDatatype:
      return "unknown datatype";
    case CallDropReason::kOutOfRange:
      return "out of range";
    case CallDropReason::kZeroCount:
      return "count 0";
    case CallDropReason::kUnknownProcess:
      return "process unknown";
    case CallDropReason::kUnknownRank:
      return "rank unknown";
    case CallDropReason::kAmbiguousCommunicator:
      return "communicator ambiguous";
    case CallDropReason::kIncompleteOnRank:
      return "incomplete";
    case CallDropReason::kRanksMissing:
      return "ranks missing";
    case CallDropReason::kRanksDisagree:
      return "ranks disagree";
    case CallDropReason::kImportFailed:
      return "import stopped by an error";
  }
  return "?";
}

uint64_t ImportReport::lines_read() const { return SumOverFiles(files, &ImportedFile::lines_read); }
uint64_t ImportReport::calls_seen() const { return SumOverFiles(files, &ImportedFile::calls_seen); }
uint64_t ImportReport::calls_imported() const {
  return SumOverFiles(files, &ImportedFile::calls_imported);
}
uint64_t ImportReport::calls_dropped() const {
  return SumOverFiles(files, &ImportedFile::calls_dropped);
}

void ImportReport::Drop(CallDropReason reason, uint32_t file, uint64_t line, std::string detail) {
  DroppedCalls& calls = dropped[static_cast<size_t>(reason)];
  ++calls.count;
  ++files[file].calls_dropped;
  if (calls.first_lines.size() < kReportedLinesMax) {
    calls.first_lines.push_back({.file = file, .line = line, .detail = std::move(detail)});
  }
}

std::string ImportReport::ToString() const {
  std::string out;
  const auto append = std::back_inserter(out);
  fmt::format_to(append, "Import of {}{}{}\n", format, nccl_version.empty() ? "" : ", NCCL ",
                 nccl_version);
  fmt::format_to(append, "lines read: {}\n", lines_read());
  fmt::format_to(append, "calls seen: {}\n", calls_seen());
  fmt::format_to(append, "calls imported: {}\n", calls_imported());
  fmt::format_to(append, "calls dropped: {}\n", calls_dropped());
  fmt::format_to(append, "calls reconstructed: {} on {} ranks\n", calls_reconstructed,
                 ranks_reconstructed);
  fmt::format_to(append, "ranks: {}\n", rank_count);
  fmt::format_to(append, "calls whose algorithm and protocol the log states: {}\n",
                 calls_with_algorithm);
  fmt::format_to(append, "tuning lines without their one call: {}\n", tuning_lines_unmatched);
  fmt::format_to(append, "files:\n");
  for (const ImportedFile& file : files) {
    fmt::format_to(append, "  {}: {} bytes, {} lines, {} calls seen, {} imported, {} dropped\n",
                   file.path, file.bytes_read, file.lines_read, file.calls_seen,
                   file.calls_imported, file.calls_dropped);
  }
  fmt::format_to(append, "dropped:{}\n", calls_dropped() == 0 ? " nothing" : "");
  for (int i = 0; i < kCallDropReasonCount; ++i) {
    const auto reason = static_cast<CallDropReason>(i);
    const DroppedCalls& calls = DroppedFor(reason);
    if (calls.count == 0) continue;
    fmt::format_to(append, "  {}: {}\n", CallDropReasonName(reason), calls.count);
    for (const ReportedLine& place : calls.first_lines) {
      fmt::format_to(append, "    {}:{}{}{}\n", files[place.file].path, place.line,
                     place.detail.empty() ? "" : ": ", place.detail);
    }
    if (calls.count > calls.first_lines.size()) {
      fmt::format_to(append, "    and {} more\n", calls.count - calls.first_lines.size());
    }
  }
  AppendSentences("reconstructed", reconstructed, out);
  AppendSentences("assumed", assumed, out);
  return out;
}

void WriteImportReport(const std::string& path, const ImportReport& report) {
  OutputFile file(path);
  file.Write(report.ToString());
  file.Close();
}

}  // namespace railyard
