// SPDX-License-Identifier: GPL-2.0-only
#include "traces/import/import.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/names.h"
#include "traces/import/foreign_format.h"
#include "traces/import/trace_readers.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/nccl_tests/nccl_tests_reader.h"

namespace railyard {
namespace {

const TraceReader* ReaderOf(std::string_view head) {
  for (const TraceReader& reader : TraceReaders()) {
    if (reader.recognizes(head)) return &reader;
  }
  return nullptr;
}

// Returns whether a text holds calls of NCCL's log, which may begin far behind the head: ranks
// print how they are connected before, and a job its own output. Consumes the stream.
bool HasLoggedCalls(InputStream& stream) {
  constexpr uint64_t kBytesMax = uint64_t{256} << 20;
  constexpr size_t kOverlapBytes = 1024;
  while (stream.bytes_read() < kBytesMax) {
    const std::string_view text = stream.Peek(InputStream::kPeekBytesMax);
    const size_t at = text.find(": opCount ");
    if (at != std::string_view::npos && text.find(" sendbuff ", at) != std::string_view::npos) {
      return true;
    }
    if (text.size() <= kOverlapBytes) return false;
    stream.Skip(text.size() - kOverlapBytes);
  }
  return false;
}

// The reader of all files, nullptr after an error.
class FormatSearch {
 public:
  FormatSearch(InputFiles& files, const std::vector<std::string>& named, Diagnostics& diagnostics)
      : files_(files), named_(named), diagnostics_(diagnostics) {}

  const TraceReader* Run() {
    const int errors_before = diagnostics_.error_count();
    files_.ForEach([&](InputStream& stream) { return Look(stream); }, diagnostics_);
    if (diagnostics_.error_count() > errors_before) return nullptr;
    if (found_ == nullptr) {
      if (unknown_.empty()) {
        diagnostics_.Error({named_.front()}, "", "holds no file");
      } else {
        const UnknownFile& first = unknown_.front();
        diagnostics_.Error({first.why.empty() ? named_.front() : first.name}, "", Text(first));
      }
      return nullptr;
    }
    for (const UnknownFile& file : unknown_) {
      if (IsNamed(file.name)) {
        diagnostics_.Error({file.name}, "", Text(file));
      } else {
        const std::string why = file.why.empty() ? "is in no format that is read" : file.why;
        diagnostics_.Warning({file.name}, "", fmt::format("is passed over: it {}", why));
        files_.LeaveOut(file.name, why);
      }
    }
    return diagnostics_.error_count() > errors_before ? nullptr : found_;
  }

 private:
  bool IsNamed(const std::string& name) const {
    return std::find(named_.begin(), named_.end(), name) != named_.end();
  }

  // Returns true if files of the first format complete those of the second.
  static bool Completes(const TraceReader& reader, const TraceReader& of) {
    return of.completed_by != nullptr && std::string_view(of.completed_by) == reader.format;
  }

  struct UnknownFile {
    std::string name;
    std::string why;  // WhyForeign
  };

  static std::string Text(const UnknownFile& file) {
    if (!file.why.empty()) return file.why;
    return fmt::format("{} is in no format that is read (expected {})",
                       Quote(file.name, kQuotedPathBytesMax), JoinAlternatives(TraceFormatNames()));
  }

  bool Look(InputStream& stream) {
    const std::string_view head = stream.Peek(InputStream::kPeekBytesMax);
    const TraceReader* reader = ReaderOf(head);
    if (!stream.failure().empty()) return true;
    const std::string why = reader == nullptr ? WhyForeign(head) : std::string();
    const bool may_hold_calls = reader == nullptr
                                    ? why.empty() && head.find('\0') == std::string_view::npos
                                    : std::string_view(reader->format) == kNcclTestsReader.format;
    if (may_hold_calls && HasLoggedCalls(stream)) reader = &kNcclLogReader;
    if (reader == nullptr) {
      unknown_.push_back({stream.name(), why});
    } else if (found_ == nullptr || Completes(*found_, *reader)) {
      found_ = reader;
      found_in_ = stream.name();
    } else if (reader != found_ && !Completes(*reader, *found_)) {
      diagnostics_.Error(
          {stream.name()}, "",
          fmt::format("is of format {}, {} of {} (expected files of one format)", reader->format,
                      Quote(found_in_, kQuotedPathBytesMax), found_->format));
      return false;
    }
    return true;
  }

  InputFiles& files_;
  const std::vector<std::string>& named_;
  Diagnostics& diagnostics_;
  const TraceReader* found_ = nullptr;
  std::string found_in_;
  std::vector<UnknownFile> unknown_;
};

// Returns whether an option was given that the reader does not use, which is an error.
bool HasOptionWithoutEffect(const ImportOptions& options, const TraceReader& reader,
                            Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const auto check = [&](bool is_given, bool is_used, const char* option, const char* why) {
    if (!is_given || is_used) return;
    diagnostics.Error(
        {option}, "",
        fmt::format("has no effect on {}, {} (expected to be left out)", reader.format, why));
  };
  check(options.ignore_times, reader.records_times, "--ignore-times", "of which no times are read");
  check(options.ranks.has_value(), reader.takes_rank_count, "--ranks",
        "whose files say which ranks there are");
  check(options.ranks_are_symmetric, reader.takes_ranks_of_processes, "--ranks symmetric",
        "whose files say which ranks there are");
  check(!options.rank_map.empty(), reader.takes_ranks_of_processes, "--rank-map",
        "whose files do not name processes");
  return diagnostics.error_count() > errors_before;
}

// Escapes a text that is not printable: traces hold UTF-8, captures any bytes.
void MakePrintable(std::string& text) {
  if (!IsPrintable(text)) text = Escaped(text);
}

void MakePrintable(Trace& trace) {
  MakePrintable(trace.nccl_version);
  for (std::string& file : trace.source_files) MakePrintable(file);
  for (TraceCommunicator& communicator : trace.communicators) MakePrintable(communicator.name);
}

}  // namespace

TraceImport ImportFiles(const std::vector<std::string>& paths, const std::string& format,
                        const ImportOptions& options, Diagnostics& diagnostics) {
  InputFiles files(paths);
  const TraceReader* const reader = format == kAutoFormat
                                        ? FormatSearch(files, paths, diagnostics).Run()
                                        : FindTraceReader(format);
  if (reader == nullptr) return {};
  if (!options.hang_trace_path.empty() && !reader->records_hangs) {
    diagnostics.Error({paths.front()}, "",
                      fmt::format("is of format {}, which does not record where a job hung "
                                  "(expected a format that does: flight-recorder)",
                                  reader->format));
    return {};
  }
  if (HasOptionWithoutEffect(options, *reader, diagnostics)) return {};
  // A reader of logs takes lines from any bytes, also those of UTF-16.
  if (format != kAutoFormat && std::string_view(reader->format) != kNcclLogReader.format)
    files.Refuse(WhyForeign);
  const int errors_before = diagnostics.error_count();
  TraceImport import = reader->read(files, options, diagnostics);
  import.report.format = reader->format;
  for (const auto& [name, reason] : files.passed_over()) {
    import.report.passed_over.push_back({.path = name, .reason = reason});
  }
  if (diagnostics.error_count() > errors_before) import.trace.reset();
  if (!import.trace && diagnostics.error_count() == errors_before) {
    diagnostics.Error({paths.front()}, "", import.report.WhyNothingIsImported());
  }
  ImportReport& report = import.report;
  SIM_CHECK(report.calls_seen() == report.calls_imported() + report.calls_dropped(),
            fmt::format("{} seen, {} imported, {} dropped", report.calls_seen(),
                        report.calls_imported(), report.calls_dropped()));
  if (import.trace) {
    MakePrintable(*import.trace);
    report.rank_count = import.trace->rank_count;
    report.communicator_count = static_cast<uint32_t>(import.trace->communicators.size());
  }
  return import;
}

}  // namespace railyard
