// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <climits>
#include <fmt/format.h>

#include "analysis/report/report_page.h"
#include "analysis/tables/run_table.h"
#include "analysis/writers/result_files.h"
#include "railyard/result.h"
#include "railyard/run.h"
#include "railyard/scenario_builder.h"
#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/cli/progress_line.h"
#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/plan_estimate.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/shell_word.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/run/baseline_file.h"
#include "simulator/run/packet_capture.h"
#include "simulator/scenario/schema/scenario.h"
#include "simulator/study/run_key.h"
#include "simulator/units/number.h"
#include "traces/trace/trace.h"

namespace railyard {
namespace {

constexpr const char* kTraceName = "trace.perfetto-trace";
constexpr uint32_t kHeadersBytes = 96;  // of any packet that is captured
constexpr uint32_t kFrameBytesMax = UINT16_MAX;
constexpr uint32_t kThreadsMax = 64;

std::string CheckWholeNumber(const std::string& text) {
  if (NumberOf<uint64_t>(text)) return {};
  return fmt::format("{} is not a whole number, 0 to {}", Quote(text), UINT64_MAX);
}

class RunCommand : public Command {
 public:
  explicit RunCommand(CLI::App& program)
      : Command(program.add_subcommand("run", "Simulate a scenario and print the results")) {
    parser()->add_option("SCENARIO", scenario_, "The scenario, protobuf text")->required();
    parser()
        ->add_option("--out", out_,
                     "The directory of the results, new or empty, or an earlier result, which is "
                     "replaced (default: out/NAME)")
        ->check(CheckPath);
    parser()
        ->add_option("--set", sets_,
                     "Set one field, e.g. faults[0].until=5ms or, of the plan's file, "
                     "workload.plan.training.iterations=5; nothing after the = removes it; may be "
                     "given again")
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
    parser()
        ->add_option("--seed", seed_, "Seed of the run, as --set seed=N")
        ->type_name("N")
        ->check(CheckWholeNumber);
    parser()
        ->add_option(
            "--mode", mode_,
            "Mode of the run, as --set mode=PACKET or mode=FLOW: flow simulates max-min fair flows "
            "instead of packets, which takes less time and is less exact (default: the "
            "scenario's, else packet)")
        ->type_name("packet|flow")
        ->check(CLI::IsMember({"packet", "flow"}));
    parser()->add_flag("--no-baseline", no_baseline_,
                       "Leave out the paired fault-free run: no stretch");
    parser()
        ->add_option("--baseline-file", baseline_file_,
                     "Keep the fault-free run's times in this file, and take them from it where a "
                     "run that differs by --set of faults alone has written it")
        ->type_name("FILE")
        ->excludes("--no-baseline")
        ->check(CheckPath);
    parser()->add_flag("--no-sync", no_sync_,
                       "Leave it to the system when results reach the disk: a power cut may leave "
                       "them incomplete");
    auto* const off = parser()->add_flag("--no-replay-cache", no_replay_cache_,
                                         "Simulate all collectives, without the replay cache");
    auto* const capture =
        parser()
            ->add_option(
                "--capture", captures_,
                "Write the packets that cross a link between servers as NAME.pcapng, for "
                "tshark: both directions of a cable, e.g. \"server1/nic3--leaf3\", or one, "
                "\"server1/nic3>leaf3\"; turns the replay cache off; may be given again")
            ->type_name("LINK")
            ->allow_extra_args(false);
    parser()
        ->add_option("--capture-bytes", capture_bytes_,
                     "Capture only so many bytes of each packet (default: all; 96 has all headers)")
        ->needs(capture)
        ->check(CLI::Range(kHeadersBytes, kFrameBytesMax));
    parser()
        ->add_flag("--verify-replay-cache", verify_replay_cache_,
                   "Simulate every hit of the cache as well, and stop at the first difference")
        ->excludes(off)
        ->excludes(capture);
    parser()
        ->add_option("--threads", threads_,
                     "Simulate on so many cores, with the same results; a run that cannot be "
                     "divided takes one, and says why (default: 1)")
        ->type_name("N")
        ->check(CLI::Range(1u, kThreadsMax));
    AddOutputFlags();
  }

  ExitStatus Run() override {
    const std::vector<std::string> sets = AllSets();
    Diagnostics diagnostics;
    std::shared_ptr<const Trace> calls;  // for the estimate
    const auto scenario =
        ReadScenario(scenario_, sets, diagnostics, no_estimate_ ? nullptr : &calls);
    if (!quiet_ || diagnostics.HasErrors()) fmt::print(stderr, "{}", diagnostics.ToString());
    if (!scenario) return kExitInput;
    if (!baseline_file_.empty() && IsForeignFile(baseline_file_)) {
      fmt::print(stderr,
                 "--baseline-file: error: {} is no file of fault-free runs (expected one, or a new "
                 "name)\n",
                 Quote(baseline_file_, kQuotedPathBytesMax));
      return kExitInput;
    }
    auto captures = FindCaptures(*scenario);
    if (!captures) return kExitInput;

    const std::string directory = out_.empty() ? "out/" + scenario->name : out_;
    const std::string partial = PartialOf(directory);
    if (!PrepareDirectories(directory, partial)) return kExitInput;
    for (const std::string& failure : RemoveLeftovers(directory)) {
      fmt::print(stderr, "railyard: {}\n", failure);
    }
    if (!no_report_ && !CanWriteReports()) {
      fmt::print(stderr, "railyard: no report.html will be written: {}\n", kNoEcharts);
    }
    SetCheckContext({.replay_command = ReplayCommand(directory),
                     .virtual_time_ps = [] { return FabricSimulatorImpl::Get().NowPs(); }});
    // From here on a signal ends the run in order, and what it has is written.
    const Interruptible interruptible;
    // The estimate is measured in separate processes before this one simulates.
    std::string no_estimate_reason;
    auto estimate = Estimate(*scenario, calls.get(), sets, no_estimate_reason);
    calls.reset();  // the job is all that is run
    // These files are written while the run goes on, and copied to the result.
    std::optional<TemporaryDirectory> recordings;
    if (perfetto_ || !captures->empty()) recordings.emplace();
    const std::string trace_file = perfetto_ ? recordings->File(kTraceName) : "";
    std::vector<ExtraFile> extra_files;
    if (perfetto_) extra_files.push_back({.name = kTraceName, .copied_from = trace_file});
    for (LinkCapture& capture : *captures) {
      const std::string name = std::exchange(capture.file, recordings->File(capture.file));
      extra_files.push_back({.name = name, .copied_from = capture.file});
    }
    ProgressLine progress(quiet_);
    Result result = railyard::Run(
        *scenario, {.baseline = !no_baseline_,
                    .baseline_file = FileOfBaseline(sets),
                    .replay_cache = CacheMode(),
                    .threads = threads_,
                    .series = true,
                    .captures = *std::move(captures),
                    .perfetto_file = trace_file,
                    .estimate = std::move(estimate),
                    .progress = progress.Options(),
                    .saving = {.save = [&](const RunResult& so_far) { Save(partial, so_far); }}});
    progress.Clear();
    if (!no_estimate_reason.empty()) result.notes.push_back(no_estimate_reason);
    std::string import_report;
    for (const ImportReport& report : scenario->import_reports) import_report += report.ToString();
    if (!import_report.empty()) {
      extra_files.push_back({.name = "import_report.txt", .content = import_report});
    }
    WriteAndPrint(directory, result, std::move(extra_files));
    return ExitStatusOf(result.status);
  }

 private:
  void AddOutputFlags() {
    parser()->add_flag("--no-estimate", no_estimate_,
                       "Do not estimate a plan's job in addition to simulating it");
    parser()->add_flag("--no-report", no_report_, "Write no report.html");
    parser()->add_flag("--perfetto", perfetto_,
                       "Write trace.perfetto-trace too: ranks, channels, slices and links over "
                       "time, for ui.perfetto.dev");
    parser()->add_flag("--quiet", quiet_, "Print errors only");
  }
  // Writes the result in place of what was saved while it ran, and prints its table.
  void WriteAndPrint(const std::string& directory, const Result& result,
                     std::vector<ExtraFile> extra_files) const {
    if (!no_report_ && CanWriteReports()) {
      extra_files.push_back({.name = "report.html", .make = ReportOfOwnResult});
    }
    WriteResults(directory, result, extra_files, no_sync_ ? Sync::kLater : Sync::kAtOnce);
    RemoveResults(PartialOf(directory));
    if (result.status == RunStatus::kInterrupted) {
      fmt::print(stderr, "railyard: {}\nrailyard: what there was by then is in {}\n",
                 result.status_detail, directory);
    }
    if (!quiet_) fmt::print("{}results: {}\n", PrintRunTable(result), directory);
    TakeInterruption();  // one that came after the simulation's end changes nothing
  }
  // Returns the settings of --set and of the options that stand for one.
  std::vector<std::string> AllSets() const {
    std::vector<std::string> sets = sets_;
    if (!seed_.empty()) sets.push_back("seed=" + seed_);
    if (!mode_.empty()) sets.push_back(mode_ == "flow" ? "mode=FLOW" : "mode=PACKET");
    return sets;
  }
  static bool PrepareDirectories(const std::string& directory, const std::string& partial) {
    for (const std::string& place : {directory, partial}) {
      if (const auto refusal = PrepareResultDirectory(place)) {
        fmt::print(stderr, "--out {}: error: {}\n", directory, *refusal);
        return false;
      }
    }
    return true;
  }
  BaselineFile FileOfBaseline(const std::vector<std::string>& sets) const {
    if (baseline_file_.empty()) return {};
    return {.path = baseline_file_, .key = FaultFreeKey(scenario_, sets)};
  }

  // Returns the place for the results of a run that goes on, beside those that it will have. A name
  // that would be longer than a file system takes is cut off.
  static std::string PartialOf(const std::string& directory) {
    constexpr std::string_view kSuffix = ".partial";
    std::string path = directory;
    while (path.ends_with('/')) path.pop_back();
    const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
    path.resize(std::min(path.size(), name + NAME_MAX - kSuffix.size()));
    return path.append(kSuffix);
  }

  // Without the report: while all of the simulation is in memory it would take more than the
  // tables. A run that could be saved only later goes on.
  static void Save(const std::string& directory, const RunResult& so_far) {
    try {
      WriteResults(directory, so_far);
    } catch (const EnvironmentError& error) {
      fmt::print(stderr, "railyard: the results so far are not saved: {}\n", error.what());
    }
  }

  // Returns the captures that are asked for, their files without a directory. Returns nullopt when
  // it has printed what is wrong with the names of links.
  std::optional<std::vector<LinkCapture>> FindCaptures(const Scenario& scenario) const {
    if (scenario.stack.uses_flows && !captures_.empty()) {
      fmt::print(stderr, "--capture: error: flow mode has no packets (expected mode: PACKET)\n");
      return std::nullopt;
    }
    std::vector<std::string> names;
    for (const std::string& name : captures_) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    const std::vector<std::string> files = CaptureFileNames(names);
    std::vector<LinkCapture> captures;
    for (size_t i = 0; i < names.size(); ++i) {
      try {
        FindCapturedLinks(scenario.fabric, names[i]);
        captures.push_back({.name = names[i], .file = files[i], .snap_bytes = capture_bytes_});
      } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "--capture: error: {}\n", error.what());
      }
    }
    if (captures.size() < names.size()) return std::nullopt;
    return captures;
  }

  // `calls` are those of a plan's job.
  std::optional<EstimateResult> Estimate(const Scenario& scenario, const Trace* calls,
                                         const std::vector<std::string>& sets,
                                         std::string& reason) const {
    if (no_estimate_ || !scenario.plan) return std::nullopt;
    const CallTimes times(*calls, scenario.fabric, CallTimes::WithoutJob(scenario_, sets));
    if (times.error().empty()) return EstimatePlan(*scenario.plan, *calls, times);
    reason = "Not estimated: a call could not be measured: " + times.error();
    return std::nullopt;
  }

  ReplayCacheMode CacheMode() const {
    if (no_replay_cache_) return ReplayCacheMode::kOff;
    return verify_replay_cache_ ? ReplayCacheMode::kVerify : ReplayCacheMode::kOn;
  }

  std::string ReplayCommand(const std::string& directory) const {
    std::string command = "railyard run " + ShellWord(scenario_) + " --out " + ShellWord(directory);
    for (const std::string& set : sets_) command += " --set " + ShellWord(set);
    if (!seed_.empty()) command += " --seed " + seed_;
    if (!mode_.empty()) command += " --mode " + mode_;
    if (no_baseline_) command += " --no-baseline";
    if (!baseline_file_.empty()) command += " --baseline-file " + ShellWord(baseline_file_);
    if (no_estimate_) command += " --no-estimate";
    if (no_report_) command += " --no-report";
    if (no_replay_cache_) command += " --no-replay-cache";
    if (threads_ > 1) command += fmt::format(" --threads {}", threads_);
    if (perfetto_) command += " --perfetto";
    for (const std::string& link : captures_) command += " --capture " + ShellWord(link);
    if (capture_bytes_ < kFrameBytesMax) {
      command += fmt::format(" --capture-bytes {}", capture_bytes_);
    }
    if (verify_replay_cache_) command += " --verify-replay-cache";
    return command;
  }

  std::string scenario_;
  std::string out_;
  std::vector<std::string> sets_;
  std::string seed_;
  std::string mode_;
  uint32_t threads_ = 1;
  bool no_baseline_ = false;
  std::string baseline_file_;
  bool no_sync_ = false;
  bool no_replay_cache_ = false;
  bool verify_replay_cache_ = false;
  bool no_estimate_ = false;
  bool no_report_ = false;
  std::vector<std::string> captures_;
  uint32_t capture_bytes_ = kFrameBytesMax;
  bool perfetto_ = false;
  bool quiet_ = false;
};

}  // namespace

ExitStatus ExitStatusOf(RunStatus status) {
  switch (status) {
    case RunStatus::kCompleted:
      return kExitDone;
    case RunStatus::kJobAborted:
      return kExitJobAborted;
    case RunStatus::kStalled:
    case RunStatus::kInterrupted:
    case RunStatus::kTimeEnded:
    case RunStatus::kRunning:
      return kExitStalled;
  }
  return kExitStalled;
}

std::unique_ptr<Command> MakeRunCommand(CLI::App& program) {
  return std::make_unique<RunCommand>(program);
}

}  // namespace railyard
