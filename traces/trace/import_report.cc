// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/import_report.h"

#include <cstdlib>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include "simulator/diagnostics/names.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/files/output_file.h"
#include "simulator/units/units.h"

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

std::string PlaceOf(const std::vector<ImportedFile>& files, const ReportedLine& place) {
  return fmt::format("{}{}{}{}", Escaped(files[place.file].path),
                     place.line == 0 ? "" : fmt::format(":{}", place.line),
                     place.detail.empty() ? "" : ": ", place.detail);
}

using JsonWriter = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

void WriteText(JsonWriter& json, std::string_view text) {
  const std::string valid = ToValidUtf8(text);  // names of files may be any bytes
  json.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
}

void WriteSentences(JsonWriter& json, const char* key, const std::vector<std::string>& sentences) {
  json.Key(key);
  json.StartArray();
  for (const std::string& sentence : sentences) WriteText(json, sentence);
  json.EndArray();
}

void WriteNumber(JsonWriter& json, const char* key, uint64_t number) {
  json.Key(key);
  json.Uint64(number);
}

void WriteDropped(JsonWriter& json, const ImportReport& report) {
  json.Key("dropped");
  json.StartArray();
  for (int i = 0; i < kCallDropReasonCount; ++i) {
    const auto reason = static_cast<CallDropReason>(i);
    const DroppedCalls& calls = report.DroppedFor(reason);
    if (calls.count == 0) continue;
    json.StartObject();
    json.Key("reason");
    WriteText(json, CallDropReasonName(reason));
    WriteNumber(json, "count", calls.count);
    json.Key("places");
    json.StartArray();
    for (const ReportedLine& place : calls.first_lines) {
      WriteText(json, PlaceOf(report.files, place));
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
}

void WriteByKind(JsonWriter& json, const ImportReport& report) {
  json.Key("by_kind");
  json.StartArray();
  for (int i = 0; i < kCollectiveKindCount; ++i) {
    const ImportedKind& imported = report.by_kind[static_cast<size_t>(i)];
    if (imported.calls == 0) continue;
    json.StartObject();
    json.Key("kind");
    WriteText(json, ReportedKindName(static_cast<CollectiveKind>(i)));
    WriteNumber(json, "calls", imported.calls);
    WriteNumber(json, "bytes", imported.bytes);
    json.EndObject();
  }
  json.EndArray();
}

void WriteClockSkew(JsonWriter& json, const ClockSkew& skew) {
  json.Key("clock_skew");
  json.StartObject();
  WriteNumber(json, "rank", skew.rank);
  WriteNumber(json, "other", skew.other);
  json.Key("ps");
  json.Int64(skew.ps);
  json.EndObject();
}

}  // namespace

std::string_view ReportedKindName(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll ? "AllToAll" : CollectiveKindName(kind);
}

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
    case CallDropReason::kSizesNotRecorded:
      return "sizes not recorded";
    case CallDropReason::kKindNotRecorded:
      return "kind not recorded";
    case CallDropReason::kMalformedRecord:
      return "malformed record";
    case CallDropReason::kRecordedTwice:
      return "recorded twice";
    case CallDropReason::kOtherFormat:
      return "schema version not read";
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

void ImportReport::DropRemaining() {
  for (ImportedFile& file : files) {
    const uint64_t rest = file.calls_seen - file.calls_imported - file.calls_dropped;
    dropped[static_cast<size_t>(CallDropReason::kImportFailed)].count += rest;
    file.calls_dropped += rest;
  }
}

void ImportReport::Import(CollectiveKind kind, uint32_t file, uint64_t stated_bytes) {
  ImportedKind& imported = by_kind[static_cast<size_t>(kind)];
  ++imported.calls;
  imported.bytes += stated_bytes;
  ++files[file].calls_imported;
}

std::string ImportReport::WhyNothingIsImported(std::string_view advice) const {
  if (calls_seen() == 0) return "holds no collective call (expected at least one)";
  std::string reasons;
  for (int i = 0; i < kCallDropReasonCount; ++i) {
    const auto reason = static_cast<CallDropReason>(i);
    const uint64_t count = DroppedFor(reason).count;
    if (count == 0) continue;
    reasons +=
        fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, CallDropReasonName(reason));
  }
  return fmt::format("none of the {} calls can be imported: {} ({})", calls_seen(), reasons,
                     advice.empty() ? "the import report lists the places" : advice);
}

std::string ImportReport::ToJson() const {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.SetIndent(' ', 2);
  json.StartObject();
  json.Key("format");
  WriteText(json, format);
  json.Key("calls");
  json.StartObject();
  WriteNumber(json, "seen", calls_seen());
  WriteNumber(json, "imported", calls_imported());
  WriteNumber(json, "dropped", calls_dropped());
  WriteNumber(json, "reconstructed", calls_reconstructed);
  json.EndObject();
  WriteByKind(json, *this);
  WriteNumber(json, "ranks", rank_count);
  WriteNumber(json, "ranks_reconstructed", ranks_reconstructed);
  WriteNumber(json, "communicators", communicator_count);
  if (clock_skew) WriteClockSkew(json, *clock_skew);
  WriteDropped(json, *this);
  WriteSentences(json, "reconstructed", reconstructed);
  WriteSentences(json, "assumed", assumed);
  json.Key("files");
  json.StartArray();
  for (const ImportedFile& file : files) {
    json.StartObject();
    json.Key("path");
    WriteText(json, file.path);
    WriteNumber(json, "bytes", file.bytes_read);
    WriteNumber(json, "seen", file.calls_seen);
    WriteNumber(json, "imported", file.calls_imported);
    WriteNumber(json, "dropped", file.calls_dropped);
    json.EndObject();
  }
  json.EndArray();
  json.Key("passed_over");
  json.StartArray();
  for (const PassedOverFile& file : passed_over) {
    json.StartObject();
    json.Key("path");
    WriteText(json, file.path);
    json.Key("reason");
    WriteText(json, file.reason);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize()) + "\n";
}

std::string ImportReport::ToString() const {
  std::string out;
  const auto append = std::back_inserter(out);
  fmt::format_to(append, "Import of {}{}{}\n", format, nccl_version.empty() ? "" : ", NCCL ",
                 nccl_version);
  if (lines_read() > 0) fmt::format_to(append, "lines read: {}\n", lines_read());
  fmt::format_to(append, "calls seen: {}\n", calls_seen());
  fmt::format_to(append, "calls imported: {}\n", calls_imported());
  fmt::format_to(append, "calls dropped: {}\n", calls_dropped());
  fmt::format_to(append, "calls reconstructed: {} on {} ranks\n", calls_reconstructed,
                 ranks_reconstructed);
  fmt::format_to(append, "ranks: {}\n", rank_count);
  fmt::format_to(append, "communicators: {}\n", communicator_count);
  if (clock_skew) {
    fmt::format_to(append, "largest difference between clocks: rank {} is {} {} rank {}\n",
                   clock_skew->rank, FormatDuration(std::abs(clock_skew->ps)),
                   clock_skew->ps < 0 ? "behind" : "ahead of", clock_skew->other);
  }
  fmt::format_to(append, "calls whose algorithm and protocol the log states: {}\n",
                 calls_with_algorithm);
  fmt::format_to(append, "tuning lines without their one call: {}\n", tuning_lines_unmatched);
  fmt::format_to(append, "imported:{}\n", calls_imported() == 0 ? " nothing" : "");
  for (int i = 0; i < kCollectiveKindCount; ++i) {
    const ImportedKind& imported = by_kind[static_cast<size_t>(i)];
    if (imported.calls == 0) continue;
    fmt::format_to(append, "  {}: {} calls, {} bytes\n",
                   ReportedKindName(static_cast<CollectiveKind>(i)), imported.calls,
                   imported.bytes);
  }
  fmt::format_to(append, "files:\n");
  for (const ImportedFile& file : files) {
    fmt::format_to(append, "  {}: {} bytes, {}{} calls seen, {} imported, {} dropped\n",
                   Escaped(file.path), file.bytes_read,
                   file.lines_read == 0 ? "" : fmt::format("{} lines, ", file.lines_read),
                   file.calls_seen, file.calls_imported, file.calls_dropped);
  }
  if (!passed_over.empty()) fmt::format_to(append, "passed over:\n");
  for (const PassedOverFile& file : passed_over) {
    fmt::format_to(append, "  {}: it {}\n", Escaped(file.path), file.reason);
  }
  fmt::format_to(append, "dropped:{}\n", calls_dropped() == 0 ? " nothing" : "");
  for (int i = 0; i < kCallDropReasonCount; ++i) {
    const auto reason = static_cast<CallDropReason>(i);
    const DroppedCalls& calls = DroppedFor(reason);
    if (calls.count == 0) continue;
    fmt::format_to(append, "  {}: {}\n", CallDropReasonName(reason), calls.count);
    for (const ReportedLine& place : calls.first_lines) {
      fmt::format_to(append, "    {}\n", PlaceOf(files, place));
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
  file.Write(path.ends_with(".json") ? report.ToJson() : report.ToString());
  file.Close();
}

}  // namespace railyard
