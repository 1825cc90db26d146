// SPDX-License-Identifier: GPL-2.0-only
// Defines the contract of readers of captured jobs: they convert files to a trace and an account of
// every call. traces/import/trace_readers.cc lists them.
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

// Says how files without all ranks of a job are treated.
enum class MissingRanks : uint8_t {
  kRefuse,       // an error
  kReconstruct,  // the missing ranks made the same calls as those present
};

// States the global rank of a process, for formats that do not.
struct ProcessRank {
  std::string host = {};  // as in the prefix of NCCL's log
  uint64_t pid = 0;
  std::optional<uint32_t> device = {};  // [N] of the prefix; needed if one process drives several
  uint32_t rank = 0;
  SourceLocation where = {};  // of this entry, for findings; the first file if left empty
};

struct ImportOptions {
  MissingRanks missing_ranks = MissingRanks::kReconstruct;
  std::vector<ProcessRank> rank_map = {};
  std::optional<uint32_t> ranks = {};  // of the job, if the files do not state it
  // Processes of unknown rank make the same calls, so their assignment to ranks does not matter.
  bool ranks_are_symmetric = false;
  bool ignore_times = false;  // calls follow each other without the recorded gaps
  // The path of the trace as it is written into the scenario of a hang; empty if no scenario is
  // wanted. Only for flight-recorder.
  std::string hang_trace_path = {};
};

struct TraceImport {
  std::optional<Trace> trace;      // absent after an error, or if no call could be imported
  ImportReport report;             // always complete: seen = imported + dropped
  std::string hang_scenario = {};  // text of the scenario, if it was wanted and there is a trace
};

// Reads all files of one job to their ends, in memory that grows with ranks and calls, not with the
// files. For any input bytes, the result is a trace that passes CheckTrace or findings.
using ReadTraceFiles = TraceImport (*)(const InputFiles& files, const ImportOptions& options,
                                       Diagnostics& diagnostics);

// Reads the files one after the other with an `Import`, which is constructed with options, the
// report and diagnostics, and has ReadFile(InputStream&) and Finish(), which returns the trace.
template <class Import>
TraceImport ReadEachFile(const InputFiles& files, const ImportOptions& options,
                         Diagnostics& diagnostics) {
  TraceImport import;
  Import reader(options, import.report, diagnostics);
  const auto read_file = [&reader](InputStream& stream) {
    reader.ReadFile(stream);
    return true;
  };
  files.ForEach(read_file, diagnostics);
  import.trace = reader.Finish();
  return import;
}

struct TraceReader {
  const char* format = nullptr;       // "kineto", as commands and reports name it
  const char* description = nullptr;  // one line: the tool that writes such files
  // Returns true if a file that begins with `head` (InputStream::kPeekBytesMax bytes or all) is of
  // this format. At most one reader returns true for any file.
  bool (*recognizes)(std::string_view head) = nullptr;
  ReadTraceFiles read = nullptr;
  bool records_hangs = false;             // makes a hang_scenario
  bool records_times = true;              // its traces have gaps, which ignore_times omits
  bool takes_rank_count = false;          // uses ImportOptions::ranks
  bool takes_ranks_of_processes = false;  // uses rank_map and ranks_are_symmetric
  // The format of files that may be among its files and complete them; nullptr for none.
  const char* completed_by = nullptr;
};

}  // namespace railyard
