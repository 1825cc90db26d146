// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/fabric_option.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/nccl_tests_table.h"
#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

constexpr uint64_t kPointsMax = 1000;

ExitStatus StatusOf(const TimedRun& outcome) {
  switch (outcome.end) {
    case TimedEnd::kDone:
      return kExitDone;
    case TimedEnd::kEnvironmentFailed:
      return kExitEnvironment;
    case TimedEnd::kInputWrong:
      return kExitInput;
    case TimedEnd::kJobAborted:
      return kExitJobAborted;
    case TimedEnd::kStalled:
      return kExitStalled;
  }
  return kExitEnvironment;
}

class PerfCommand : public Command {
 public:
  explicit PerfCommand(CLI::App& program)
      : Command(
            program.add_subcommand("perf", "Simulate collectives and print nccl-tests' table")) {
    parser()
        ->add_option("--collective", collective_,
                     "The operation, named as in nccl-tests (default with --schedule: that of the "
                     "schedule)")
        ->check(ShowNames(PerfCollectiveNames()));
    parser()
        ->add_option("--fabric", fabric_,
                     "A platform (its reference rail-optimized fabric), a preset or a file")
        ->required();
    parser()->add_option("--nodes", nodes_, "Servers of a platform (default: 1)");
    parser()->add_option("-b,--minbytes", bytes_min_, "Smallest size (default: 1M)");
    parser()->add_option("-e,--maxbytes", bytes_max_, "Largest size (default: 1G)");
    parser()->add_option("-f,--stepfactor", factor_,
                         "Factor from one size to the next (default: 2)");
    parser()->add_option("--algo", algorithm_, kAlgorithmHelp);
    parser()->add_option("--proto", protocol_, "Protocols as in NCCL_PROTO, e.g. Simple");
    parser()->add_option("--nccl-version", version_, "Version of NCCL, e.g. 2.27.5");
    parser()->add_option(
        "--net", net_,
        "Network as in NCCL_NET: IB (RDMA), Socket (TCP) or AWS Libfabric (EFA; default: IB)");
    parser()->add_option("--schedule", schedule_, "The file of a user's own algorithm to run");
    parser()
        ->add_option("-J,--json", json_,
                     "Write nccl-tests' JSON too; - is standard output, instead "
                     "of the table")
        ->type_name("FILE");
  }

  ExitStatus Run() override {
    PerfReport report;
    if (!ReadArguments(report)) return kExitInput;
    Diagnostics diagnostics;
    CheckOutputs({{"--json", json_}}, {fabric_, schedule_}, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (diagnostics.HasErrors()) return kExitInput;
    const std::optional<FabricOption> fabric = ReadFabricOption(fabric_, nodes_, NetworkOf(net_));
    if (!fabric) return kExitInput;
    report.fabric = fabric->name;
    report.ranks = fabric->gpus;
    PerfPoint base = {.collective = report.collective, .scenario = fabric->scenario};
    PrintNote(SetChoice(algorithm_, protocol_, version_, net_, base));
    if (!schedule_.empty()) {
      base.scenario.Set("workload.schedule", std::filesystem::absolute(schedule_).string());
    }
    const bool shows_table = json_ != "-";
    const size_t halves = CopiesWithinRank(KindOf(report.collective)) ? 2 : 1;
    std::vector<PerfPoint> points;
    for (uint64_t asked = report.bytes_min; asked <= report.bytes_max; asked *= report.factor) {
      const uint64_t bytes = WholeBlocks(report.collective, asked, report.ranks);
      for (size_t half = 0; half < halves && bytes > 0; ++half) {
        points.push_back(base);
        points.back().bytes = bytes;
        points.back().in_place = half == 1;
      }
      if (bytes > 0) report.rows.push_back({.bytes = bytes, .out_of_place = {}, .in_place = {}});
      if (asked > report.bytes_max / report.factor) break;
    }
    if (points.empty()) {
      PrintError(
          fmt::format("-e: {} is less than an element for each of {} ranks (expected {} or more)",
                      FormatBytes(report.bytes_max), report.ranks,
                      FormatBytes(kPerfElementBytes * report.ranks)));
      return kExitInput;
    }
    Diagnostics findings;
    if (!LoadPoint(points.front(), findings)) {
      fmt::print(stderr, "{}", findings.ToString());
      return kExitInput;
    }
    if (shows_table) fmt::print("{}", PerfHeader(report));
    const ExitStatus worst = RunRows(points, halves, shows_table, report);
    if (worst == kExitEnvironment || worst == kExitInput) return worst;
    if (shows_table) fmt::print("{}", PerfFooter(report));
    if (!json_.empty()) WriteOutput(json_, PerfJson(report));
    return worst;
  }

 private:
  // Runs the points, `halves` for each row. Lines appear in order, each as soon as those before it
  // have. Returns the greatest exit status of a row.
  static ExitStatus RunRows(const std::vector<PerfPoint>& points, size_t halves, bool shows_table,
                            PerfReport& report) {
    std::vector<size_t> done(report.rows.size());
    size_t shown = 0;
    ExitStatus worst = kExitDone;
    RunPoints(points, [&](size_t index, const TimedRun& outcome) {
      PerfRow& ended = report.rows[index / halves];
      if (index % halves == 0) ended.out_of_place = outcome;
      if (index % halves == halves - 1) ended.in_place = outcome;
      ++done[index / halves];
      for (; shown < done.size() && done[shown] == halves; ++shown) {
        const PerfRow& row = report.rows[shown];
        if (!row.ran()) {
          worst = std::max(worst, PrintFailure(row));
        } else if (shows_table) {
          fmt::print("{}", PerfLine(report, row));
          std::fflush(stdout);
        }
      }
    });
    return worst;
  }

  static ExitStatus PrintFailure(const PerfRow& row) {
    const ExitStatus status = std::max(StatusOf(row.out_of_place), StatusOf(row.in_place));
    const std::string why = fmt::format("{} B: {}", row.bytes, row.error());
    if (status == kExitEnvironment) {
      PrintError(why);
    } else {
      fmt::print(stderr, "{}\n", why);
    }
    return status;
  }

  bool ReadArguments(PerfReport& report) {
    bool right = true;
    const auto wrong = [&](const std::string& what) {
      PrintError(what);
      right = false;
    };
    if (collective_.empty()) {
      if (!TakeCollectiveOfSchedule(report)) right = false;
    } else if (const auto collective = FindPerfCollective(collective_)) {
      report.collective = *collective;
    } else {
      wrong("--collective: " + UnknownName("collective", collective_, PerfCollectiveNames()));
    }
    const auto size = [&](const char* option, const std::string& text, uint64_t& bytes) {
      const auto parsed = ParseBytes(text);
      if (parsed && *parsed > kOperationBytesMax) {
        wrong(fmt::format("{}: {} is out of range (expected at most {})", option, Quote(text),
                          FormatBytes(kOperationBytesMax)));
      } else if (parsed && *parsed > 0) {
        bytes = *parsed;
      } else {
        wrong(fmt::format("{}: {} {}", option, Quote(text), WhyNoBytes(text)));
      }
    };
    size("-b", bytes_min_, report.bytes_min);
    size("-e", bytes_max_, report.bytes_max);
    if (right && report.bytes_min > report.bytes_max) {
      wrong(fmt::format(
          "-b {} is larger than -e {} (expected at most as much; defaults are 1M and 1G)",
          bytes_min_, bytes_max_));
    }
    if (factor_ < 2 || factor_ > kPointsMax) wrong("-f: expected a factor of 2 or more");
    report.factor = factor_;
    return right;
  }

  // Returns false after an error.
  bool TakeCollectiveOfSchedule(PerfReport& report) const {
    if (schedule_.empty()) {
      PrintError("--collective is required (or --schedule with the file of one)");
      return false;
    }
    Diagnostics diagnostics;
    const auto algorithm = LoadScheduleFile(schedule_, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!algorithm) return false;
    const auto collective = FindPerfCollective(algorithm->kind);
    if (collective) report.collective = *collective;
    return collective.has_value();
  }

  std::string collective_;
  std::string fabric_;
  uint32_t nodes_ = 1;
  std::string bytes_min_ = "1M";
  std::string bytes_max_ = "1G";
  uint64_t factor_ = 2;
  std::string algorithm_;
  std::string protocol_;
  std::string version_;
  std::string net_;
  std::string schedule_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> MakePerfCommand(CLI::App& program) {
  return std::make_unique<PerfCommand>(program);
}

}  // namespace railyard
