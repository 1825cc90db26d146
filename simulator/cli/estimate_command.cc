// SPDX-License-Identifier: GPL-2.0-only
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/fabric_option.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/fabric_volume.h"
#include "simulator/measure/plan_estimate.h"
#include "simulator/units/units.h"
#include "traces/trace/trace.h"
#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/plan_volume.h"
#include "workloads/plans/synthesis/plan_loader.h"
#include "workloads/plans/synthesis/routed_tokens.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

class EstimateCommand : public Command {
 public:
  explicit EstimateCommand(CLI::App& program)
      : Command(program.add_subcommand("estimate",
                                       "Estimate a plan's traffic and times without simulation")) {
    parser()->add_option("WORKLOAD", plan_, "A plan, protobuf text")->required();
    parser()
        ->add_option("--set", sets_, "Change one field of the plan; may be given again")
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
    parser()
        ->add_option("--pairs", pairs_, "Write the bytes of each pair as CSV; - is standard output")
        ->type_name("FILE");
    parser()->add_option("--fabric", fabric_,
                         "Estimate pairs as a run on it has them, and times: a platform (its "
                         "reference rail-optimized fabric), a preset or a file");
    parser()->add_option("--nodes", nodes_, "Servers of a platform (default: 1)");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const auto plan = LoadPlanFile(plan_, sets_, diagnostics);
    CheckOutputs({{"--pairs", pairs_}}, {plan_, fabric_}, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (fabric_.empty() && nodes_) {
      PrintError("--nodes: has no effect without --fabric (expected both or neither)");
      return kExitInput;
    }
    if (!plan || diagnostics.HasErrors()) return kExitInput;
    const auto trace = std::make_shared<const Trace>(Synthesize(*plan));
    if (fabric_.empty()) {
      Report(*plan, VolumeOf(*trace), trace->rank_count, trace->rank_count);
      return kExitDone;
    }
    return EstimateOnFabric(*plan, trace);
  }

 private:
  // `ranks` is the number of the job's ranks, and `gpus` that of GPUs among which there may be
  // pairs.
  void Report(const Plan& plan, const PlanVolume& volume, uint32_t ranks, uint64_t gpus) const {
    if (pairs_ != "-") fmt::print("{}{}", Describe(plan, volume, ranks), Table(volume, gpus));
    WritePairs(volume);
  }

  static std::string Describe(const Plan& plan, const PlanVolume& volume, uint32_t ranks) {
    const Parallelism& parts = plan.parallelism;
    const bool is_layered = plan.layered.has_value();
    const double parameters = static_cast<double>(is_layered ? ParameterCount(*plan.layered)
                                                             : ParameterCount(plan.model));
    const double active = is_layered ? static_cast<double>(DenseParameterCount(*plan.layered))
                                     : static_cast<double>(ActiveParameterCount(plan.model));
    std::string text = fmt::format(
        "{}: {:.4g} billion parameters ({:.4g} {}) on {} GPUs: tensor {} x context {} x data "
        "{} x pipeline {}{}\n",
        plan.name, parameters / 1e9, active / 1e9, is_layered ? "without embeddings" : "active",
        ranks, parts.tensor(), parts.context(), parts.data(), parts.pipeline(),
        parts.expert > 1 ? fmt::format(", experts over {}", parts.expert) : "");
    const auto* const training = std::get_if<Training>(&plan.job);
    text += fmt::format("Computation of the GPU that computes longest{}: {}\n",
                        training != nullptr && training->iterations > 1
                            ? fmt::format(", in {} iterations", training->iterations)
                            : "",
                        FormatDuration(volume.compute_ps));
    if (plan.parallelism.expert > 1) {
      const RoutedTokens routed = RoutedTokensOf(plan);
      text +=
          fmt::format("Tokens sent to experts, once for each of theirs: {}; dropped beside: {}\n",
                      routed.sent, routed.dropped);
    }
    if (training == nullptr) return text;
    // Frozen layers have no gradients, and adapters have additional operations.
    const bool trains_all = !training->fine_tuning.lora && training->fine_tuning.frozen_layers == 0;
    if (trains_all) {
      const double samples =
          static_cast<double>(training->micro_batch) * training->micro_batches * parts.data();
      text += fmt::format("Operations per iteration: {:.4g} PFLOP (3 forward passes)\n",
                          3 *
                              (is_layered ? ForwardFlops(*plan.layered)
                                          : ForwardFlops(plan.model, 1, training->sequence)) *
                              samples / 1e15);
    }
    if (parts.pipeline() > 1 && training->schedule == PipelineScheduleKind::kOneFOneB) {
      const double before = parts.pipeline() - 1;
      text += fmt::format("Bubble (p - 1) / (p - 1 + m): {:.1f} %\n",
                          100 * before / (before + training->micro_batches));
    }
    return text;
  }

  std::string Table(const PlanVolume& volume, uint64_t gpus) const {
    std::string text =
        fmt::format("\n{:<12} {:>12} {:>12} {:>16}\n", "group", "calls", "sent", "most by one GPU");
    for (const auto& [name, group] : volume.groups) {
      text += fmt::format("{:<12} {:>12} {:>12} {:>16}\n", name, group.calls,
                          FormatBytes(group.bytes), FormatBytes(group.largest_bytes));
    }
    return text + fmt::format("{} of {} possible pairs of GPUs talk, {}.\n", volume.pairs.size(),
                              gpus * (gpus - 1),
                              fabric_.empty()
                                  ? "every collective as one ring"
                                  : "by the algorithms that a run with NCCL's default settings "
                                    "chooses");
  }

  ExitStatus EstimateOnFabric(const Plan& plan, const std::shared_ptr<const Trace>& calls) const {
    const Trace& trace = *calls;
    const std::optional<FabricOption> option = ReadFabricOption(fabric_, nodes_.value_or(1));
    if (!option) return kExitInput;
    if (option->gpus < trace.rank_count) {
      fmt::print(
          stderr,
          "railyard: error: --fabric: the job has {} ranks, {} has {} GPUs (expected one for "
          "each)\n",
          trace.rank_count, option->name, option->gpus);
      return kExitInput;
    }
    Diagnostics diagnostics;
    const auto scenario = ScenarioBuilder(option->scenario).Calls(calls).Build(diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!scenario) return kExitInput;
    Report(plan, VolumeOnFabric(*scenario, trace), trace.rank_count, option->gpus);
    if (pairs_ == "-") return kExitDone;  // standard output is the table's
    const CallTimes times(trace, scenario->fabric, option->scenario);
    if (!times.error().empty()) {
      fmt::print(stderr, "railyard: error: {}\n", times.error());
      return kExitInput;
    }
    fmt::print("{}", TimeTables(plan, EstimatePlan(plan, trace, times), times));
    return kExitDone;
  }

  static std::string TimeTables(const Plan& plan, const EstimateResult& estimate,
                                const CallTimes& times) {
    std::string text = fmt::format("\n{:<12} {:<14} {:>6} {:>12} {:>12} {:>12}\n", "measured",
                                   "call", "ranks", "bytes", "time", "bytes/time");
    for (const MeasuredCall& call : times.Measured()) {
      const double gbytes_per_second =
          1e3 * static_cast<double>(call.bytes) / static_cast<double>(call.time_ps);
      text += fmt::format("{:<12} {:<14} {:>6} {:>12} {:>12} {:>7.4g} GB/s\n", call.group,
                          CollectiveKindName(call.kind), call.ranks, FormatBytes(call.bytes),
                          FormatDuration(call.time_ps), gbytes_per_second);
    }
    const TimeBreakdown& parts = estimate.parts;
    text += fmt::format("\nTime of {}\n",
                        std::holds_alternative<Training>(plan.job) ? "an iteration" : "the job");
    for (const auto& [name, ps] : {std::pair{"computation", parts.compute_ps},
                                   {"calls computation waits for", parts.tensor_ps},
                                   {"experts' exchanges", parts.expert_ps},
                                   {"pipeline transfers", parts.pipeline_ps},
                                   {"other calls, exposed", parts.data_ps},
                                   {"late ranks", parts.wait_ps},
                                   {"bubble", parts.bubble_ps},
                                   {"together", parts.total_ps()},
                                   {"other calls, hidden", parts.overlap_ps}}) {
      text += fmt::format("{:<28} {:>12}\n", name,
                          FormatDuration(ps / static_cast<int64_t>(estimate.iterations)));
    }
    return text + fmt::format("{:<28} {:>10.1f} %\n", "exposed communication",
                              100 * parts.CommunicationShare());
  }

  void WritePairs(const PlanVolume& volume) const {
    if (pairs_.empty()) return;
    std::string text = "source_gpu,destination_gpu,payload_bytes\n";
    for (const auto& [pair, bytes] : volume.pairs) {
      text += fmt::format("{},{},{}\n", pair.first, pair.second, bytes);
    }
    WriteOutput(pairs_, text);
  }

  std::string plan_;
  std::vector<std::string> sets_;
  std::string pairs_;
  std::string fabric_;
  std::optional<uint32_t> nodes_;
};

}  // namespace

std::unique_ptr<Command> MakeEstimateCommand(CLI::App& program) {
  return std::make_unique<EstimateCommand>(program);
}

}  // namespace railyard
