// SPDX-License-Identifier: GPL-2.0-only
#include "tests/fuzz/fuzz_targets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "analysis/compare/stored_result.h"
#include "analysis/report/report_page.h"
#include "analysis/store/result_store.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/measured_table.h"
#include "simulator/measure/nccl_tests_rows.h"
#include "simulator/measure/other_times.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/run/baseline_file.h"
#include "simulator/scenario/load/scenario_loader.h"
#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "simulator/study/study.h"
#include "simulator/study/study_directory.h"
#include "simulator/study/study_result.h"
#include "simulator/units/divide_up.h"
#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/traffic_loader.h"
#include "topologies/prices/prices.h"
#include "traces/import/import.h"
#include "traces/import/trace_readers.h"
#include "traces/reading/tar_archive.h"
#include "traces/trace/trace_file.h"
#include "workloads/job/job.h"
#include "workloads/plans/inference/requests.h"
#include "workloads/plans/parallelism/captured_routing.h"
#include "workloads/plans/synthesis/plan_loader.h"

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

// Imports the file as of a format, or of the one that it is found to be (kAutoFormat).
void ImportCapture(const std::string& path, const std::string& format,
                   const ImportOptions& options) {
  Diagnostics diagnostics;
  const TraceImport import = ImportFiles({path}, format, options, diagnostics);
  RequireResultOrFindings(import.trace.has_value(), diagnostics);
  const ImportReport& report = import.report;
  Require(report.calls_seen() == report.calls_imported() + report.calls_dropped(),
          "calls are not accounted for");
  // A few bytes may state half a million ranks, whose trace takes sanitizers ten seconds.
  constexpr uint32_t kRanksMax = 1 << 16;
  if (!import.trace || import.trace->rank_count > kRanksMax) return;
  Diagnostics of_job;
  BuildJob(*import.trace, of_job);  // its calls may not match; it ends
  const std::string written = path + ".trace";
  WriteTrace(written, *import.trace);
  Diagnostics of_trace;
  Require(ReadTrace(written, of_trace).has_value(),
          "an imported trace is refused:\n" + of_trace.ToString());
}

// Returns a tar archive whose headers have the checksums of what is in them: an edit without that
// would only show that checksums are compared.
std::string WithChecksums(std::string archive) {
  constexpr size_t kSizeOffset = 124;
  constexpr size_t kChecksumOffset = 148;
  constexpr size_t kChecksumBytes = 8;
  for (size_t at = 0; archive.size() - at >= kTarBlockBytes;) {
    const auto begin = archive.begin() + static_cast<std::ptrdiff_t>(at);
    const auto checksum = begin + kChecksumOffset;
    if (std::all_of(begin, begin + kTarBlockBytes, [](char c) { return c == 0; })) {
      at += kTarBlockBytes;  // a mark of the end, which has no checksum
      continue;
    }
    std::fill_n(checksum, kChecksumBytes, ' ');
    unsigned sum = 0;
    std::for_each(begin, begin + kTarBlockBytes,
                  [&sum](char c) { sum += static_cast<unsigned char>(c); });
    std::array<char, kChecksumBytes> digits = {};
    std::snprintf(digits.data(), digits.size(), "%06o", sum);
    std::ranges::copy(digits, checksum);
    const uint64_t size = std::strtoull(archive.substr(at + kSizeOffset, 12).c_str(), nullptr, 8);
    const uint64_t blocks = 1 + DivideUp(std::min<uint64_t>(size, archive.size()), kTarBlockBytes);
    at = std::min<size_t>(archive.size(), at + blocks * kTarBlockBytes);
  }
  return archive;
}

// Imports a tar archive of captures, whose format is to be found. Entries may be compressed, and so
// may the archive be as a whole, which is then left as it is.
void ImportArchive(const std::string& path) {
  std::string archive = ReadBytes(path);
  const bool is_compressed =
      archive.starts_with("\x1f\x8b") || archive.starts_with("\x28\xb5\x2f\xfd");
  if (!is_compressed) archive = WithChecksums(std::move(archive));
  std::ofstream(path, std::ios::binary) << archive;
  ImportCapture(path, kAutoFormat, {});
}

// Goes on with a study whose file `keys` is the one at `path`.
void ResumeStudy(const std::string& path) {
  const std::string directory = path + ".study";
  std::filesystem::create_directory(directory);
  std::filesystem::copy_file(path, directory + "/keys",
                             std::filesystem::copy_options::overwrite_existing);
  Diagnostics diagnostics;
  const auto resumed = StudyDirectory::Resume(directory, {std::string(32, '0')}, diagnostics);
  RequireResultOrFindings(resumed != nullptr, diagnostics);
}

// A scenario of a few bytes may rightly ask for a million cables, which take seconds and gigabytes
// under sanitizers. Numbers of two digits are enough for every branch but those that refuse large
// numbers, which the mutation campaign and tests of ranges reach.
std::string WithShortNumbers(std::string_view text) {
  std::string shortened;
  size_t digits = 0;
  for (const char c : text) {
    digits = std::isdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0;
    if (digits <= 2) shortened += c;
  }
  return shortened;
}

// Adds a target for files that `load(path, diagnostics)` reads; it returns what is false after an
// error. A file that is named in another and cannot be read is no finding of the fuzzer.
template <typename Load>
void AddLoader(std::vector<FuzzTarget>& targets, const std::string& name, const std::string& file,
               bool has_large_numbers, Load load) {
  targets.push_back({.name = name,
                     .file = file,
                     .has_large_numbers = has_large_numbers,
                     .read = [load](const std::string& path) {
                       Diagnostics diagnostics;
                       try {
                         const auto loaded = load(path, diagnostics);
                         RequireResultOrFindings(static_cast<bool>(loaded), diagnostics);
                       } catch (const EnvironmentError&) {
                       }
                     }});
}

// Reads the bytes as each of the tables that plans, scenarios and `railyard fidelity` take.
void ReadTables(const std::string& path) {
  constexpr uint32_t kExpertLayers = 2;
  Diagnostics diagnostics;
  LoadCapturedRouting(path, {.count = 8, .per_token = 2}, kExpertLayers, diagnostics);
  LoadRequests(path, diagnostics);
  ReadOtherTimes(path, ReadMeasuredTable(path, diagnostics), diagnostics);
  ReadNcclTests(path, diagnostics);
  const std::string scenario = path + ".textproto";
  std::ofstream(scenario) << R"(
    fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }
    workload { program { collectives { kind: ALL_REDUCE bytes: "1KiB" } } }
    faults { name: "log" kind: LINK_DOWN log: ")"
                          << path << "\" }";
  LoadScenario(scenario, {}, diagnostics);
}

// Reads results.sqlite as `railyard compare` and `railyard report` do, and the same bytes as a file
// of fault-free runs.
void ReadResult(const std::string& path) {
  constexpr size_t kCollectives = 3;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  Diagnostics diagnostics;
  RequireResultOrFindings(ReadStoredResult(directory, diagnostics).has_value(), diagnostics);
  try {
    ReportPage(ResultStore(directory));
  } catch (const UnreadableResult&) {
  } catch (const EnvironmentError&) {  // no charts in this build
  }
  if (IsForeignFile(path)) return;
  ReadBaselineFile({.path = path, .key = "fuzz"}, kCollectives, 1);
}

// Reads the bytes as a study that goes on does: as a run's summary.json and as the study's keys.
void ReadSummaryOfRun(const std::string& path) {
  Study study;
  study.figures = {"simulated_time_ps", "collectives.stretch.0", "faults.1.lost_packets", "."};
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const bool has_result = HasResult(directory);
  const StudyRunResult run = ReadRunResult(study, directory);
  Require(run.has_result == has_result, "a result is there once, and once it is not");
  Require(run.figures.size() == study.figures.size(), "figures are missing");
  ResumeStudy(path);
}

std::vector<FuzzTarget> MakeTargets() {
  std::vector<FuzzTarget> targets;
  for (const TraceReader& reader : TraceReaders()) {
    const std::string format = reader.format;
    ImportOptions options;
    if (reader.takes_rank_count) options.ranks = 4;
    targets.push_back({.name = format,
                       .file = format == "chakra" ? "job.0.et" : "capture",
                       .read = [format, options](const std::string& path) {
                         ImportCapture(path, format, options);
                       }});
  }
  targets.push_back({.name = "archive", .file = "captures.tar", .read = ImportArchive});
  targets.push_back({.name = "trace", .file = "job.trace", .read = ReadTraceTwice});
  AddLoader(targets, "plan", "plan.textproto", true,
            [](const std::string& path, Diagnostics& diagnostics) {
              return LoadPlanFile(path, {}, diagnostics);
            });
  AddLoader(targets, "scenario", "scenario.textproto", false,
            [](const std::string& path, Diagnostics& diagnostics) {
              return LoadScenario(path, {}, diagnostics);
            });
  AddLoader(targets, "study", "study.textproto", false, LoadStudy);
  AddLoader(targets, "schedule", "schedule", true, LoadScheduleFile);
  AddLoader(targets, "fabric", "fabric", false,
            [](const std::string& path, Diagnostics& diagnostics) {
              return LoadFabricArgument(path, diagnostics);
            });
  AddLoader(targets, "traffic", "traffic.csv", true,
            [](const std::string& path, Diagnostics& diagnostics) {
              return LoadTraffic(path, 16, diagnostics);
            });
  AddLoader(targets, "prices", "prices.textproto", true, LoadPrices);
  targets.push_back(
      {.name = "tables", .file = "table.csv", .has_large_numbers = true, .read = ReadTables});
  targets.push_back(
      {.name = "result", .file = "results.sqlite", .has_large_numbers = true, .read = ReadResult});
  targets.push_back({.name = "summary",
                     .file = "summary.json",
                     .has_large_numbers = true,
                     .read = ReadSummaryOfRun});
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
  std::ofstream(path, std::ios::binary)
      << (target.has_large_numbers ? std::string(bytes) : WithShortNumbers(bytes));
  target.read(path);
}

void FuzzFailed(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

}  // namespace railyard::testing
