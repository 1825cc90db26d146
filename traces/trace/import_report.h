// SPDX-License-Identifier: GPL-2.0-only
// Accounts for every call record in the files of an import: it is either imported or dropped for
// one named reason, so `seen = imported + dropped` holds per file and in total.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace/trace.h"

namespace railyard {

enum class CallDropReason : uint8_t {
  kTruncatedLine,     // the record ends, or another line cuts into it, before its last field
  kLineTooLong,       // the record is beyond the largest line length that is read
  kUnnamedOperation,  // NCCL up to 2.3.5 does not print which operation it is
  kUnsupportedKind,   // PutSignal, Signal, WaitSignal, or a name that is not NCCL's
  kUnknownDatatype,   // a datatype number NCCL does not have
  kOutOfRange,        // root or peer outside the communicator, or more bytes than a call can have
  kZeroCount,         // transfers nothing; NCCL drops such a collective as well
  kUnknownProcess,    // the line lost its HOST:PID:TID and its communicator is not known elsewhere
  kUnknownRank,       // the process's global rank is not known
  kAmbiguousCommunicator,  // the ranks of the communicator are ambiguous
  kIncompleteOnRank,       // another rank's log ends before its part of this call
  kRanksMissing,           // the log lacks ranks of the communicator, which is refused
  kRanksDisagree,          // ranks made different calls at the same place
  kImportFailed,           // the call is correct, but an error elsewhere stopped the import
  kSizesNotRecorded,       // the file does not state the number of elements
  kKindNotRecorded,        // a kernel that may be any collective
  kMalformedRecord,        // a field is missing or has an impossible value
  kRecordedTwice,          // an earlier record has the same identity
  kOtherFormat,            // the record's schema version is not one that is read
};
inline constexpr int kCallDropReasonCount = 19;
std::string_view CallDropReasonName(CallDropReason reason);  // "truncated line"

struct ReportedLine {
  uint32_t file = 0;  // index into ImportReport::files
  uint64_t line = 0;
  std::string detail;  // may be empty, e.g. "incomplete on rank 3"
};

// Counts imported calls, with their bytes as their file states them.
struct ImportedKind {
  uint64_t calls = 0;
  uint64_t bytes = 0;
};

// Counts dropped calls. The first kReportedLinesMax lines are kept; `count` is the total.
struct DroppedCalls {
  uint64_t count = 0;
  std::vector<ReportedLine> first_lines;
};
inline constexpr size_t kReportedLinesMax = 50;

struct ImportedFile {
  std::string path;
  uint64_t bytes_read = 0;
  uint64_t lines_read = 0;  // 0 if the format has no lines
  uint64_t calls_seen = 0;
  uint64_t calls_imported = 0;
  uint64_t calls_dropped = 0;
};

// Describes a file that is no part of the import, with the reason ("is in no format that is read").
struct PassedOverFile {
  std::string path;
  std::string reason;
};

// Holds the largest difference between the clocks of two ranks in a capture.
struct ClockSkew {
  uint32_t rank = 0;
  uint32_t other = 0;  // the lowest rank of a communicator that contains both
  int64_t ps = 0;      // by which the clock of `rank` is ahead of the other's
};

struct ImportReport {
  std::string format;        // "nccl-log"
  std::string nccl_version;  // empty if no line states it
  std::vector<ImportedFile> files;
  std::vector<PassedOverFile> passed_over;                   // of a directory or an archive
  std::array<ImportedKind, kCollectiveKindCount> by_kind{};  // by CollectiveKind
  std::array<DroppedCalls, kCallDropReasonCount> dropped;    // by CallDropReason
  uint64_t calls_reconstructed = 0;                          // calls without a line
  uint32_t ranks_reconstructed = 0;
  uint32_t rank_count = 0;  // of the trace; 0 without one
  uint32_t communicator_count = 0;
  // The number of calls whose algorithm and protocol the log states, and of tuning lines that match
  // no call or several.
  uint64_t calls_with_algorithm = 0;
  uint64_t tuning_lines_unmatched = 0;
  std::optional<ClockSkew> clock_skew;     // nullopt if the capture shows none
  std::vector<std::string> reconstructed;  // sentences
  std::vector<std::string> assumed;        // sentences

  uint64_t lines_read() const;
  uint64_t calls_seen() const;
  uint64_t calls_imported() const;
  uint64_t calls_dropped() const;
  const DroppedCalls& DroppedFor(CallDropReason reason) const {
    return dropped[static_cast<size_t>(reason)];
  }
  // Counts the call as dropped, in total and for its file.
  void Drop(CallDropReason reason, uint32_t file, uint64_t line, std::string detail = {});
  // Drops the calls that were seen and are neither imported nor dropped, because an error stopped
  // the import.
  void DropRemaining();
  // Counts the call as imported. `stated_bytes` is the size of its buffer on its rank as the file
  // states it.
  void Import(CollectiveKind kind, uint32_t file, uint64_t stated_bytes);
  // Explains for a finding why there is no trace: the files had no call, or each was dropped.
  // `advice` says how to correct it; if it is empty, the text refers to the report.
  std::string WhyNothingIsImported(std::string_view advice = {}) const;
  // Returns the report as text for people, one fact per line.
  std::string ToString() const;
  // Returns the same as one JSON object (docs/import.md).
  std::string ToJson() const;
};

// Returns the name of a kind in reports, e.g. "AllToAll".
std::string_view ReportedKindName(CollectiveKind kind);

// Writes the report to `path`, complete or not at all: as JSON if it ends in ".json", else as text;
// "-" is standard output. Throws EnvironmentError if that fails.
void WriteImportReport(const std::string& path, const ImportReport& report);

}  // namespace railyard
