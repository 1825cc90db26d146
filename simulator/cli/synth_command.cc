// SPDX-License-Identifier: GPL-2.0-only
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "traces/trace/trace_file.h"
#include "workloads/plans/synthesis/plan_loader.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

class SynthCommand : public Command {
 public:
  explicit SynthCommand(CLI::App& program)
      : Command(program.add_subcommand("synth", "Turn a plan into the trace of its job")) {
    parser()->add_option("WORKLOAD", plan_, "A plan, protobuf text")->required();
    parser()->add_option("-o,--output", trace_, "The trace to write")->required();
    parser()
        ->add_option("--set", sets_, "Change one field of the plan; may be given again")
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const auto plan = LoadPlanFile(plan_, sets_, diagnostics);
    CheckOutputs({{"--output", trace_}}, {plan_}, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!plan || diagnostics.HasErrors()) return kExitInput;
    const Trace trace = Synthesize(*plan);
    WriteTrace(trace_, trace);
    fmt::print(trace_ == "-" ? stderr : stdout, "trace: {} ({}, {}, {})\n", trace_,
               Counted(trace.rank_count, "rank"),
               Counted(trace.communicators.size(), "communicator"),
               Counted(trace.operations.OperationCount(), "operation"));
    return kExitDone;
  }

 private:
  std::string plan_;
  std::string trace_;
  std::vector<std::string> sets_;
};

}  // namespace

std::unique_ptr<Command> MakeSynthCommand(CLI::App& program) {
  return std::make_unique<SynthCommand>(program);
}

}  // namespace railyard
