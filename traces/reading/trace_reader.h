// SPDX-License-Identifier: GPL-2.0-only
// The contract of readers of captured jobs: files in, a trace and an account of what became of
// every call out. traces/import/trace_readers.cc lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/input_files.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// What happens where the files do not hold every rank of a job.
enum class MissingRanks : uint8_t {
  kRefuse,       // an error
  kReconstruct,  // the missing ranks made the same calls as those present
};

// Which global rank a process is, where its format does not say it.
struct ProcessRank {
  std::string host = {};  // as in the prefix of NCCL's log
  uint64_t pid = 0;
  std::optional<uint32_t> device =
      {};  // [N] of the prefix; needed where one process drives several
  uint32_t rank = 0;
  SourceLocation where = {};  // of this entry, for findings; the first file if left empty
};

struct ImportOptions {
  MissingRanks missing_ranks = MissingRanks::kReconstruct;
  std::vector<ProcessRank> rank_map = {};
  std::optional<uint32_t> ranks = {};  // of the job, where the files do not say it
  bool ignore_times = false;  // calls follow each other without the gaps that were recorded
  // The trace as a scenario of a hang names it; empty: none is wanted. For flight-recorder alone.
  std::string hang_trace_path = {};
};

struct TraceImport {
  std::optional<Trace> trace;      // absent after an error, or if no call could be imported
  ImportReport report;             // complete whatever happened: seen = imported + dropped
  std::string hang_scenario = {};  // its text, where one was wanted and there is a trace
};

// Reads all files of one job to their ends, in memory that grows with ranks and calls, not with the
// files. Whatever the bytes are, the answer is a trace that passes CheckTrace or findings.
using ReadTraceFiles = TraceImport (*)(const InputFiles& files, const ImportOptions& options,
                                       Diagnostics& diagnostics);

struct TraceReader {
  const char* format = nullptr;       // "kineto", as commands and reports name it
  const char* description = nullptr;  // one line: what writes such files
  // Whether a file that begins with `head` (InputStream::kPeekBytesMax bytes or all) is of this
  // format. At most one reader says so of any file.
  bool (*recognizes)(std::string_view head) = nullptr;
  ReadTraceFiles read = nullptr;
  bool records_hangs = false;  // makes a hang_scenario
  bool records_times = true;   // its traces have gaps, which ignore_times leaves out
};

}  // namespace railyard
