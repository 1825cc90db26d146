// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/units/number.h"
#include "traces/import/import.h"
#include "traces/import/trace_readers.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_file.h"

namespace railyard {
namespace {

// "HOST:PID[:DEVICE]=RANK". A host's name holds no colon in NCCL's prefix.
std::optional<ProcessRank> ParseRankOf(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return std::nullopt;
  ProcessRank entry;
  if (!ParseNumber(text.substr(equals + 1), entry.rank)) return std::nullopt;
  std::string_view process = text.substr(0, equals);
  const size_t first = process.find(':');
  if (first == 0 || first == std::string_view::npos) return std::nullopt;
  entry.host = process.substr(0, first);
  process.remove_prefix(first + 1);
  const size_t second = process.find(':');
  if (second != std::string_view::npos) {
    uint32_t device = 0;
    if (!ParseNumber(process.substr(second + 1), device)) return std::nullopt;
    entry.device = device;
  }
  if (!ParseNumber(process.substr(0, second), entry.pid)) return std::nullopt;
  return entry;
}

class ImportCommand : public Command {
 public:
  explicit ImportCommand(CLI::App& program)
      : Command(program.add_subcommand("import", "Turn a captured job into a trace")) {
    std::vector<std::string> formats = TraceFormatNames();
    formats.emplace_back(kAutoFormat);
    parser()
        ->add_option("--format", format_,
                     "Format of the files (default: auto, as their contents say)")
        ->check(ShowNames(formats));
    parser()
        ->add_option("FILE", files_,
                     "The files of one job, directories or tar archives of them; gzip and zstd are "
                     "decompressed")
        ->required();
    parser()->add_option("-o,--output", trace_,
                         "The trace to write; with --scenario by default beside the scenario, with "
                         "the ending .trace");
    parser()->add_option(
        "--report", report_,
        "The import report (default: TRACE.report.txt; JSON where it ends in .json, - is "
        "standard output)");
    parser()
        ->add_option("--rank-map", rank_map_,
                     "The rank of a process, where no Init line states it; may be given again")
        ->type_name("HOST:PID[:DEVICE]=RANK")
        ->allow_extra_args(false);
    parser()
        ->add_option("--missing-ranks", missing_ranks_,
                     "Ranks the files do not hold: reconstruct (default; they ran the same "
                     "program as those present, and the report says so) or refuse")
        ->check(ShowNames({"reconstruct", "refuse"}));
    parser()
        ->add_option("--ranks", ranks_,
                     "Ranks of the job, where the files do not state it; symmetric: the ranks of "
                     "an NCCL log's processes are not known, and all make the same calls")
        ->type_name("N|symmetric");
    parser()->add_option("--scenario", scenario_,
                         "A scenario to write from flight-recorder's files, whose run ends where "
                         "the job hung and names who waits for whom");
    parser()->add_flag("--ignore-times", ignore_times_,
                       "Calls follow each other without the gaps that were recorded");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    NameTrace(diagnostics);
    const ImportOptions options = Options(diagnostics);
    if (diagnostics.HasErrors()) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    const TraceImport import = ImportFiles(files_, format_, options, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    // Files of no known format have nothing to report.
    if (import.report.format.empty()) return kExitInput;
    if (HasReport()) WriteImportReport(ReportPath(), import.report);
    if (import.trace) WriteTrace(trace_, *import.trace);
    if (!import.hang_scenario.empty()) WriteOutput(scenario_, import.hang_scenario);
    const bool is_taken = trace_ == "-" || ReportPath() == "-";  // standard output
    fmt::print(is_taken ? stderr : stdout, "{}", Summary(import));
    return import.trace ? kExitDone : kExitInput;
  }

 private:
  void NameTrace(Diagnostics& diagnostics) {
    if (!trace_.empty()) return;
    if (scenario_.empty()) {
      diagnostics.Error({"--output"}, "", "is missing (expected a file to write the trace to)");
    } else {
      trace_ = std::filesystem::path(scenario_).replace_extension(".trace").string();
    }
  }

  // A trace on standard output has a report only where one is named.
  bool HasReport() const { return trace_ != "-" || !report_.empty(); }
  std::string ReportPath() const { return report_.empty() ? trace_ + ".report.txt" : report_; }

  ImportOptions Options(Diagnostics& diagnostics) const {
    ImportOptions options;
    options.ignore_times = ignore_times_;
    ReadRanks(options, diagnostics);
    if (format_ != kAutoFormat && FindTraceReader(format_) == nullptr) {
      diagnostics.Error({"--format"}, "", UnknownName("format", format_, TraceFormatNames()));
    }
    if (missing_ranks_ == "refuse") {
      options.missing_ranks = MissingRanks::kRefuse;
    } else if (missing_ranks_ != "reconstruct") {
      diagnostics.Error({"--missing-ranks"}, "",
                        UnknownName("", missing_ranks_, {"reconstruct", "refuse"}));
    }
    for (const std::string& text : rank_map_) {
      const SourceLocation where{"--rank-map " + text};
      if (auto entry = ParseRankOf(text)) {
        entry->where = where;
        options.rank_map.push_back(std::move(*entry));
      } else {
        diagnostics.Error(where, "", "expected HOST:PID=RANK or HOST:PID:DEVICE=RANK");
      }
    }
    for (const std::string& file : files_) {
      if (std::error_code error; std::filesystem::is_directory(file, error)) continue;
      const std::string problem = WhyNotAFile(file);
      if (!problem.empty()) diagnostics.Error({file}, "", problem);
    }
    if (!scenario_.empty()) {
      // Paths in a scenario are relative to it.
      const auto directory = std::filesystem::absolute(scenario_).parent_path();
      options.hang_trace_path =
          std::filesystem::absolute(trace_).lexically_relative(directory).string();
    }
    CheckOutputs({{"--output", trace_}, {"--report", ReportPath()}, {"--scenario", scenario_}},
                 files_, diagnostics);
    return options;
  }

  void ReadRanks(ImportOptions& options, Diagnostics& diagnostics) const {
    if (ranks_.empty()) return;
    options.ranks_are_symmetric = ranks_ == "symmetric";
    if (options.ranks_are_symmetric) {
      if (missing_ranks_ == "refuse") {
        diagnostics.Error({"--ranks symmetric"}, "",
                          "gives missing ranks the calls of those present, which --missing-ranks "
                          "refuse forbids (expected one of them)");
      }
      return;
    }
    uint32_t ranks = 0;
    if (!ParseNumber(ranks_, ranks) || ranks == 0 || ranks > kTraceRanksMax) {
      diagnostics.Error({"--ranks"}, "",
                        fmt::format("{} is out of range (expected 1 to {}, or symmetric)", ranks_,
                                    kTraceRanksMax));
    }
    options.ranks = ranks;
  }

  std::string Summary(const TraceImport& import) const {
    const ImportReport& report = import.report;
    std::string text;
    if (format_ == kAutoFormat) text = fmt::format("format: {}\n", report.format);
    text += fmt::format(
        "{} calls seen in {}{}: {} imported, {} dropped", report.calls_seen(),
        report.lines_read() == 0 ? "" : fmt::format("{} lines of ", report.lines_read()),
        Counted(report.files.size(), "file"), report.calls_imported(), report.calls_dropped());
    const char* separator = " (";
    for (int i = 0; i < kCallDropReasonCount; ++i) {
      const auto reason = static_cast<CallDropReason>(i);
      if (report.DroppedFor(reason).count == 0) continue;
      text += fmt::format("{}{}: {}", separator, CallDropReasonName(reason),
                          report.DroppedFor(reason).count);
      separator = ", ";
    }
    if (report.calls_dropped() > 0) text += ")";
    text += ".\n";
    if (report.calls_reconstructed > 0 && report.ranks_reconstructed == 0) {
      text += fmt::format("{} that late ranks had not made {} added.\n",
                          Counted(report.calls_reconstructed, "call"),
                          report.calls_reconstructed == 1 ? "is" : "are");
    } else if (report.calls_reconstructed > 0) {
      text += fmt::format("{} calls of {} missing ranks are reconstructed from the others.\n",
                          report.calls_reconstructed, report.ranks_reconstructed);
    }
    if (!report.assumed.empty()) {
      text += fmt::format("{} assumption{} made, see the report.\n", report.assumed.size(),
                          report.assumed.size() == 1 ? " was" : "s were");
    }
    text += import.trace
                ? fmt::format("trace: {} ({})\n", trace_, Counted(import.trace->rank_count, "rank"))
                : std::string("No trace is written: no call can be imported.\n");
    if (HasReport()) text += fmt::format("report: {}\n", ReportPath());
    return text;
  }

  std::string format_ = kAutoFormat;
  std::vector<std::string> files_;
  std::string trace_;
  std::string report_;
  std::vector<std::string> rank_map_;
  std::string missing_ranks_ = "reconstruct";
  std::string ranks_;
  bool ignore_times_ = false;
  std::string scenario_;
};

}  // namespace

std::unique_ptr<Command> MakeImportCommand(CLI::App& program) {
  return std::make_unique<ImportCommand>(program);
}

}  // namespace railyard
