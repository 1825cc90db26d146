// SPDX-License-Identifier: GPL-2.0-only
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/fabric_option.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/perf_point.h"
#include "simulator/measure/schedule_dump.h"
#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"
#include "traces/trace/collective_blocks.h"

namespace railyard {
namespace {

// More steps take minutes to check and gigabytes to write.
constexpr uint64_t kStepsMax = 50'000'000;
// An exchange has connections between all pairs of ranks, which take 1 KB each to plan.
constexpr uint32_t kExchangeRanksMax = 1'024;

class ScheduleCommand : public Command {
 public:
  explicit ScheduleCommand(CLI::App& program)
      : Command(program.add_subcommand("schedule",
                                       "List and check the transfers of a collective's schedule")) {
    CLI::Option* const file = parser()->add_option(
        "schedule", file_, "A user's own algorithm, instead of --collective and --fabric");
    parser()
        ->add_option("--collective", collective_, "The operation, named as in nccl-tests")
        ->excludes(file)
        ->check(ShowNames(PerfCollectiveNames()));
    parser()
        ->add_option("--bytes", bytes_, "Size as in nccl-tests (default: 1MiB)")
        ->type_name("SIZE");
    parser()
        ->add_option("--fabric", fabric_,
                     "A platform (its reference rail-optimized fabric), a preset or a file")
        ->excludes(file);
    parser()->add_option("--nodes", nodes_, "Servers of a platform (default: 1)")->excludes(file);
    parser()->add_option("--algo", algorithm_, kAlgorithmHelp)->excludes(file);
    parser()
        ->add_option("--proto", protocol_, "Protocols as in NCCL_PROTO, e.g. Simple")
        ->excludes(file);
    parser()
        ->add_option("--nccl-version", version_, "Version of NCCL, e.g. 2.27.5")
        ->excludes(file);
    parser()->add_option("--rows", rows_, "Transfers that the table shows (default: 100)");
    parser()
        ->add_option("--json", json_,
                     "Write all transfers as JSON; - is standard output, instead "
                     "of the table")
        ->type_name("FILE");
    parser()
        ->add_option("--goal", goal_, "Write the schedule in GOAL, for LogGOPSim; - as above")
        ->type_name("FILE");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    CheckOutputs({{"--json", json_}, {"--goal", goal_}}, {file_, fabric_}, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (diagnostics.HasErrors()) return kExitInput;
    const std::optional<PlannedCollective> plan = file_.empty() ? PlanOfNccl() : PlanOfFile();
    if (!plan) return kExitInput;
    const PlannedCollective& planned = *plan;
    const uint64_t steps = StepCountOf(planned);
    if (steps > kStepsMax) {
      PrintError(fmt::format(
          "--bytes: {} makes {} steps over all ranks and channels (expected at most {}: "
          "fewer bytes or nodes)",
          Quote(bytes_), steps, kStepsMax));
      return kExitInput;
    }
    const std::string why_not_goal = goal_.empty() ? "" : WhyNotGoal(planned);
    if (!why_not_goal.empty()) {
      PrintError("--goal: " + why_not_goal + " (expected --algo Ring or Tree)");
      return kExitInput;
    }
    const std::string wrong = CheckPlanned(planned);
    SIM_CHECK(wrong.empty(), wrong);
    if (json_ != "-" && goal_ != "-") PrintTable(planned, steps);
    WriteTo(json_, [&](const TextSink& write) { WriteScheduleJson(planned, write); });
    WriteTo(goal_, [&](const TextSink& write) { WriteScheduleGoal(planned, write); });
    return kExitDone;
  }

 private:
  std::optional<PlannedCollective> PlanOfNccl() {
    PerfPoint point;
    if (!ReadArguments(point)) return std::nullopt;
    Diagnostics findings;
    const auto scenario = LoadPoint(point, findings);
    if (!scenario) {
      fmt::print(stderr, "{}", findings.ToString());
      return std::nullopt;
    }
    return PlanFirstCollective(*scenario);
  }

  std::optional<PlannedCollective> PlanOfFile() {
    uint64_t bytes = 0;
    if (!ReadBytes(bytes)) return std::nullopt;
    Diagnostics diagnostics;
    const auto algorithm = LoadScheduleFile(file_, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!algorithm) return std::nullopt;
    if (IsMadeOfBlocks(algorithm->kind)) bytes -= bytes % algorithm->rank_count;
    if (bytes == 0) {
      PrintError(fmt::format("--bytes: {} leaves the {} ranks nothing (expected more)",
                             Quote(bytes_), algorithm->rank_count));
      return std::nullopt;
    }
    collective_ = CollectiveKindName(algorithm->kind);
    fabric_name_ = file_;
    return PlanOf(algorithm, bytes);
  }

  bool ReadBytes(uint64_t& bytes) const {
    const auto parsed = ParseBytes(bytes_);
    if (parsed) bytes = *parsed;
    if (!parsed) PrintError(fmt::format("--bytes: {} {}", Quote(bytes_), WhyNoBytes(bytes_)));
    return parsed.has_value();
  }

  bool ReadArguments(PerfPoint& point) {
    bool right = true;
    for (const auto& [option, value] :
         {std::pair("--collective", &collective_), std::pair("--fabric", &fabric_)}) {
      if (!value->empty()) continue;
      PrintError(fmt::format("{} is required (or the file of a schedule)", option));
      right = false;
    }
    if (!right) return false;
    std::vector<std::string> names;
    bool is_known = false;
    for (int i = 0; i < kPerfCollectiveCount; ++i) {
      const auto collective = static_cast<PerfCollective>(i);
      names.emplace_back(PerfCollectiveName(collective));
      if (names.back() != collective_) continue;
      point.collective = collective;
      is_known = true;
    }
    if (!is_known) {
      PrintError("--collective: " + UnknownName("collective", collective_, names));
      right = false;
    }
    if (!ReadBytes(point.bytes)) right = false;
    const auto fabric = ReadFabricOption(fabric_, nodes_);
    if (!fabric || !right) return false;
    point.bytes = WholeBlocks(point.collective, point.bytes, fabric->gpus);
    if (point.bytes == 0) {
      PrintError(fmt::format("--bytes: {} leaves a rank of {} without an element (expected more)",
                             Quote(bytes_), fabric->gpus));
      return false;
    }
    fabric_name_ = fabric->name;
    point.scenario = fabric->scenario;
    if (point.collective == PerfCollective::kAllToAll && fabric->gpus > kExchangeRanksMax) {
      PrintError(
          fmt::format("--collective: an alltoall of {} ranks is of {} pairs (expected at "
                      "most {} ranks)",
                      fabric->gpus, uint64_t{fabric->gpus} * fabric->gpus, kExchangeRanksMax));
      return false;
    }
    PrintNote(SetChoice(algorithm_, protocol_, version_, "", point));
    return true;
  }

  void PrintTable(const PlannedCollective& planned, uint64_t steps) const {
    fmt::print("# {} of {} B on {}, {}: {}, {}; every rank ends with its result\n", collective_,
               planned.collective.bytes, fabric_name_, Counted(planned.schedules.size(), "rank"),
               planned.name, Counted(steps, "step"));
    for (const std::string& assumption : planned.assumptions)
      fmt::print("# assumed: {}\n", assumption);
    WriteScheduleTable(planned, rows_, [](const std::string& text) { fmt::print("{}", text); });
  }

  template <typename Writer>
  static void WriteTo(const std::string& path, const Writer& writer) {
    if (path.empty()) return;
    OutputFile file(path);
    writer([&](const std::string& text) { file.Write(text); });
    file.Close();
  }

  std::string file_;
  std::string collective_;
  std::string bytes_ = "1MiB";
  std::string fabric_;
  std::string fabric_name_;
  uint32_t nodes_ = 1;
  std::string algorithm_;
  std::string protocol_;
  std::string version_;
  uint64_t rows_ = 100;
  std::string json_;
  std::string goal_;
};

}  // namespace

std::unique_ptr<Command> MakeScheduleCommand(CLI::App& program) {
  return std::make_unique<ScheduleCommand>(program);
}

}  // namespace railyard
