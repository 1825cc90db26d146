// SPDX-License-Identifier: GPL-2.0-only
// The contract of readers of captured jobs: they turn files into a trace and an account of every
// call. traces/import/trace_readers.cc lists them.
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

// The treatment of files that do not hold every rank of a job.
enum class MissingRanks : uint8_t {
  kRefuse,       // an error
  kReconstruct,  // the missing ranks made the same calls as those present
};

// The global rank of a process, for formats that do not state it.
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
  // Processes of unknown rank make the same symmetric calls, so that which is which does not count.
  bool ranks_are_symmetric = false;
  bool ignore_times = false;  // calls follow each other without the gaps that were recorded
  // Path of the trace as written into the scenario of a hang; empty: no scenario is wanted. Only
  // for flight-recorder.
  std::string hang_trace_path = {};
};

struct TraceImport {
  std::optional<Trace> trace;      // absent after an error, or if no call could be imported
  ImportReport report;             // complete whatever happened: seen = imported + dropped
  std::string hang_scenario = {};  // its text, where one was wanted and there is a trace
};

// Reads all files of one job to their ends, in memory that grows with ranks and calls, not with the
// files. For any input bytes, the result is a trace that passes CheckTrace or findings.
using ReadTraceFiles = TraceImport (*)(const InputFiles& files, const ImportOptions& options,
                                       Diagnostics& diagnostics);

struct TraceReader {
  const char* format = nullptr;       // "kineto", as commands and reports name it
  const char* description = nullptr;  // one line: what writes such files
  // Returns true if a file that begins with `head` (InputStream::kPeekBytesMax bytes or all) is of
  // this format. At most one reader returns true for any file.
  bool (*recognizes)(std::string_view head) = nullptr;
  ReadTraceFiles read = nullptr;
  bool records_hangs = false;             // makes a hang_scenario
  bool records_times = true;              // its traces have gaps, which ignore_times leaves out
  bool takes_rank_count = false;          // uses ImportOptions::ranks
  bool takes_ranks_of_processes = false;  // uses rank_map and ranks_are_symmetric
  // Files of this format may be among its files, which they complete; nullptr: none.
  const char* completed_by = nullptr;
};

}  // namespace railyard
