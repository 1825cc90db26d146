// SPDX-License-Identifier: GPL-2.0-only
#include "tests/fuzz/fuzz_targets.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/processes/temporary_directory.h"
#include "traces/import/import.h"
#include "traces/import/trace_readers.h"
#include "traces/trace/trace_file.h"
#include "workloads/job/job.h"
#include "workloads/plans/plan_loader.h"

namespace railyard::testing {
namespace {

void Require(bool condition, const std::string& why) {
  if (!condition) FuzzFailed(why);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A result or findings, never both and never neither.
void RequireResultOrFindings(bool has_result, const Diagnostics& diagnostics) {
  Require(
      has_result != diagnostics.HasErrors(),
      "result " + std::string(has_result ? "and" : "nor") + " errors:\n" + diagnostics.ToString());
}

// A trace that can be written is read again as the same.
void ReadTraceTwice(const std::string& path) {
  Diagnostics diagnostics;
  const std::optional<Trace> trace = ReadTrace(path, diagnostics);
  RequireResultOrFindings(trace.has_value(), diagnostics);
  if (!trace) return;
  const std::string first = path + ".first";
  const std::string second = path + ".second";
  WriteTrace(first, *trace);
  const std::optional<Trace> again = ReadTrace(first, diagnostics);
  Require(again.has_value(), "a trace that was written is refused:\n" + diagnostics.ToString());
  WriteTrace(second, *again);
  Require(ReadBytes(first) == ReadBytes(second), "a trace changes when it is written again");
}

void ImportCapture(const TraceReader& reader, const std::string& path) {
  ImportOptions options;
  if (reader.takes_rank_count) options.ranks = 4;
  Diagnostics diagnostics;
  const TraceImport import = ImportFiles({path}, reader.format, options, diagnostics);
  RequireResultOrFindings(import.trace.has_value(), diagnostics);
  const ImportReport& report = import.report;
  Require(report.calls_seen() == report.calls_imported() + report.calls_dropped(),
          "calls are not accounted for");
  if (!import.trace) return;
  Diagnostics of_job;
  BuildJob(*import.trace, of_job);  // its calls may not match; it ends
  const std::string written = path + ".trace";
  WriteTrace(written, *import.trace);
  Diagnostics of_trace;
  Require(ReadTrace(written, of_trace).has_value(),
          "an imported trace is refused:\n" + of_trace.ToString());
}

std::vector<FuzzTarget> MakeTargets() {
  std::vector<FuzzTarget> targets;
  for (const TraceReader& reader : TraceReaders()) {
    const std::string format = reader.format;
    targets.push_back(
        {.name = format,
         .file = format == "chakra" ? "job.0.et" : "capture",
         .read = [&reader](const std::string& path) { ImportCapture(reader, path); }});
  }
  targets.push_back({.name = "trace", .file = "job.trace", .read = ReadTraceTwice});
  targets.push_back({.name = "plan", .file = "plan.textproto", .read = [](const std::string& path) {
                       Diagnostics diagnostics;
                       const auto plan = LoadPlanFile(path, {}, diagnostics);
                       RequireResultOrFindings(plan.has_value(), diagnostics);
                     }});
  return targets;
}

}  // namespace

const std::vector<FuzzTarget>& FuzzTargets() {
  static const std::vector<FuzzTarget> kTargets = MakeTargets();
  return kTargets;
}

void RunFuzzTarget(const FuzzTarget& target, std::string_view bytes) {
  static const TemporaryDirectory kDirectory;
  const std::string path = kDirectory.File(target.file);
  std::ofstream(path, std::ios::binary) << bytes;
  target.read(path);
}

void FuzzFailed(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

}  // namespace railyard::testing
