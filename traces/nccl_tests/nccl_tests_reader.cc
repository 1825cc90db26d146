// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_tests/nccl_tests_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simulator/units/number.h"
#include "simulator/units/units.h"
#include "traces/nccl_tests/nccl_tests_job.h"
#include "traces/nccl_tests/nccl_tests_line.h"
#include "traces/nccl_tests/nccl_tests_text.h"
#include "traces/reading/lines.h"
#include "traces/reading/value.h"
#include "traces/trace/nccl_version.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr size_t kLineBytesMax = size_t{1} << 20;

bool IsJson(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && head[first] == '{';
}

bool LooksLikeNcclTests(std::string_view head) {
  const auto holds = [&](std::string_view text) {
    return head.find(text) != std::string_view::npos;
  };
  if (IsJson(head)) return holds("\"start_time\"") && holds("\"args\"") && holds("_perf");
  // Calls in NCCL's log say more: which rank made them.
  return !holds("opCount ") && holds("# nThread ") && holds(" nGpus ") && holds(" minBytes ");
}

class NcclTestsImport {
 public:
  NcclTestsImport(const ImportOptions& options, ImportReport& report, Diagnostics& diagnostics)
      : options_(options), report_(report), diagnostics_(diagnostics), job_(report) {}

  void ReadFile(InputStream& stream) {
    file_ = static_cast<uint32_t>(report_.files.size());
    report_.files.push_back({.path = stream.name()});
    table_ = {};
    text_ = {};
    if (IsJson(stream.Peek(InputStream::kPeekBytesMax))) {
      ReadJson(stream);
    } else {
      const auto read_line = [&](std::string_view line) {
        ReadLine(line);
        return true;
      };
      ForEachLine(stream, kLineBytesMax, report_.files[file_], read_line, diagnostics_);
      ReadVersion(text_.nccl_version());
      has_cut_devices_ = has_cut_devices_ || text_.has_cut_devices();
    }
    report_.files[file_].bytes_read = stream.bytes_read();
  }

  std::optional<Trace> Finish() {
    if (has_name_of_file_) {
      report_.assumed.push_back(
          "tables that do not name their test are of the one in the name of their file");
    }
    report_.assumed.push_back(
        "the iterations of a row are one call, with their mean time; calls follow each other");
    if (has_cpu_times_) {
      report_.assumed.push_back(
          "times of the CPU (-C 1) are those of launches: such calls have no measured duration");
    }
    if (has_cut_devices_) {
      report_.assumed.push_back(
          "the program has cut its list of devices: a process has as many ranks as threads times "
          "GPUs");
    }
    if (has_single_halves_) {
      report_.assumed.push_back(
          "rows of one half that do not say which are those of buffers out of place");
    }
    std::optional<Trace> trace = job_.Finish(diagnostics_);
    const DroppedCalls& unnamed = report_.DroppedFor(CallDropReason::kUnnamedOperation);
    if (!trace && !diagnostics_.HasErrors() && !unnamed.first_lines.empty()) {
      const ReportedLine& place = unnamed.first_lines.front();
      diagnostics_.Error(
          {.file = report_.files[place.file].path, .line = static_cast<int>(place.line)}, "",
          report_.WhyNothingIsImported("expected the test's name in the output or in the name of "
                                       "the file, e.g. all_reduce_perf.txt"));
    }
    return trace;
  }

 private:
  // --- Text --------------------------------------------------------------------------------------
  void ReadLine(std::string_view line) {
    const NcclTestsText::LineKind kind = text_.Take(line);
    if (kind == NcclTestsText::LineKind::kRow) {
      table_ = text_.table();
      has_single_halves_ = has_single_halves_ || text_.row().in_place_us.empty();
      AddHalf(text_.row(), false);
      AddHalf(text_.row(), true);
    } else if (kind == NcclTestsText::LineKind::kDefectiveRow) {
      DropDefectiveRow(text_.defect());
    }
  }

  void DropDefectiveRow(const DefectiveRow& defect) {
    ImportedFile& file = report_.files[file_];
    ++file.calls_seen;
    report_.Drop(
        defect.is_truncated ? CallDropReason::kTruncatedLine : CallDropReason::kMalformedRecord,
        file_, file.lines_read, defect.detail);
  }

  void ReadVersion(std::optional<uint64_t> version) {
    if (version) report_.nccl_version = NcclVersionText(*version);
  }

  void AddHalf(const NcclTestsLine& row, bool in_place) {
    const std::string_view time = in_place ? row.in_place_us : row.out_of_place_us;
    if (time.empty() || time == "N/A") return;  // the half is not run
    NcclTestsCall call{.bytes = row.bytes,
                       .count = row.count,
                       .type = row.type,
                       .root = row.root,
                       .in_place = in_place,
                       .line = report_.files[file_].lines_read};
    if (text_.has_cpu_times()) {
      AddUnmeasured(call);
    } else {
      Add(call, ParseMeasuredUs(time), time);
    }
  }

  // --- JSON --------------------------------------------------------------------------------------
  void ReadJson(InputStream& stream) {
    const auto visit = [&](std::string_view key, const Value& value, uint64_t line) {
      if (key == "args" && !value.items.empty()) {
        table_.test = FindNcclTest(value.items.front().Text());
      } else if (key == "nccl_version") {
        uint64_t version = 0;
        if (ParseNumber(value.Text(), version)) ReadVersion(version);
      } else if (key == "config") {
        table_.ranks = RanksOf(value);
      } else if (key == "results") {
        AddResult(value, line);
      }
    };
    ForEachJsonItem(stream, "results", visit, diagnostics_);
  }

  // One device is listed for each process, which has nthreads x ngpus of them.
  static uint32_t RanksOf(const Value& config) {
    const Value* const devices = config.Find("devices");
    if (devices == nullptr) return 0;
    const uint64_t of_process = std::clamp<uint64_t>(
        config.UnsignedOf("nthreads").value_or(1) * config.UnsignedOf("ngpus").value_or(1), 1,
        kTraceRanksMax);
    uint64_t ranks = 0;
    for (const Value& device : devices->items) {
      if (device.UnsignedOf("group") == devices->items.front().UnsignedOf("group")) ++ranks;
    }
    return static_cast<uint32_t>(std::min<uint64_t>(ranks * of_process, UINT32_MAX));
  }

  void AddResult(const Value& result, uint64_t line) {
    const std::string type = result.TextOf("type");
    const std::string root = result.TextOf("root");
    for (const bool in_place : {false, true}) {
      const Value* const half = result.Find(in_place ? "in_place" : "out_of_place");
      if (half == nullptr || !half->IsMap()) continue;  // the half is not run
      NcclTestsCall call{
          .bytes = result.UnsignedOf("size").value_or(0),
          .count = result.UnsignedOf("count").value_or(0),
          .type = type,
          .root = std::string_view(root).substr(std::min(root.find_first_not_of(' '), root.size())),
          .in_place = in_place,
          .line = line};
      // With -C the CPU's time to launch the call is printed in its place.
      if (half->Find("time") == nullptr && half->Find("cpu_time") != nullptr) {
        AddUnmeasured(call);
        continue;
      }
      const std::string time = half->TextOf("time");
      Add(call, ParseMeasuredUs(time), time);
    }
  }

  // --- Calls -------------------------------------------------------------------------------------
  void Add(NcclTestsCall& call, std::optional<double> measured_us, std::string_view time) {
    ++report_.files[file_].calls_seen;
    call.file = file_;
    if (!measured_us) {
      report_.Drop(CallDropReason::kMalformedRecord, file_, call.line,
                   fmt::format("{} is not a time in microseconds", time.substr(0, 40)));
      return;
    }
    call.measured_ps = std::llround(*measured_us * static_cast<double>(kPsPerUs));
    Place(call);
  }

  void AddUnmeasured(NcclTestsCall& call) {
    ++report_.files[file_].calls_seen;
    call.file = file_;
    has_cpu_times_ = true;
    Place(call);
  }

  void Place(const NcclTestsCall& call) {
    NcclTestsTable table = table_;
    if (!table.test) {
      table.test = FindNcclTest(report_.files[file_].path);
      has_name_of_file_ = has_name_of_file_ || table.test.has_value();
    }
    if (table.ranks == 0) table.ranks = options_.ranks.value_or(0);
    job_.Add(table, call);
  }

  const ImportOptions& options_;
  ImportReport& report_;
  Diagnostics& diagnostics_;
  NcclTestsJob job_;
  uint32_t file_ = 0;
  NcclTestsTable table_;
  NcclTestsText text_;
  bool has_name_of_file_ = false;
  bool has_cpu_times_ = false;  // of any table
  bool has_cut_devices_ = false;
  bool has_single_halves_ = false;
};

TraceImport ReadFiles(const InputFiles& files, const ImportOptions& options,
                      Diagnostics& diagnostics) {
  TraceImport import = ReadEachFile<NcclTestsImport>(files, options, diagnostics);
  if (!import.trace) import.report.DropRemaining();
  return import;
}

}  // namespace

constinit const TraceReader kNcclTestsReader = {
    .format = "nccl-tests",
    .description = "tables of nccl-tests and rccl-tests, text or the JSON of -J",
    .recognizes = LooksLikeNcclTests,
    .read = ReadFiles,
    .records_times = false,
    .takes_rank_count = true};

}  // namespace railyard
