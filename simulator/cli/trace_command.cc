// SPDX-License-Identifier: GPL-2.0-only
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "traces/chakra/chakra_writer.h"
#include "traces/goal/goal_binary.h"
#include "traces/goal/goal_writer.h"
#include "traces/trace/trace_file.h"
#include "traces/transform/trace_csv.h"
#include "traces/transform/trace_cut.h"
#include "traces/transform/trace_diff.h"
#include "traces/transform/trace_merge.h"
#include "traces/transform/trace_retarget.h"
#include "traces/transform/trace_summary.h"

namespace railyard {
namespace {

const std::vector<std::string>& ExportFormats() {
  static const std::vector<std::string> kFormats = {"chakra", "goal", "goal-binary", "csv"};
  return kFormats;
}

// "3" or "3-7", as part of a list or alone.
std::optional<NumberRange> ParseRange(std::string_view text) {
  NumberRange range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc()) return std::nullopt;
  range.last = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, range.last);
  if (last.ec != std::errc() || last.ptr != end || range.last < range.first) return std::nullopt;
  return range;
}

class TraceCommand : public Command {
 public:
  explicit TraceCommand(CLI::App& program)
      : Command(program.add_subcommand("trace", "Show and transform traces")) {
    parser()->require_subcommand(1);
    AddShow();
    AddCut();
    AddRetarget();
    AddOthers();
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    CheckOutputs({{"--output", output_}, {"--json", json_}}, traces_, diagnostics);
    std::vector<Trace> traces;
    if (!diagnostics.HasErrors()) {
      for (const std::string& path : traces_) {
        if (auto trace = ReadTrace(path, diagnostics)) traces.push_back(*std::move(trace));
      }
    }
    ExitStatus status = kExitInput;
    if (!diagnostics.HasErrors()) status = RunOn(traces, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    return diagnostics.HasErrors() ? kExitInput : status;
  }

 private:
  CLI::App* Add(const char* name, const char* what, int traces_min, int traces_max) {
    CLI::App* const verb = parser()->add_subcommand(name, what);
    verb->add_option("TRACE", traces_, "A trace that import or synth wrote")
        ->required()
        ->expected(traces_min, traces_max);
    return verb;
  }
  CLI::App* AddWithOutput(const char* name, const char* what, int traces_min, int traces_max) {
    CLI::App* const verb = Add(name, what, traces_min, traces_max);
    verb->add_option("-o,--output", output_, "The trace to write")->required();
    return verb;
  }

  void AddShow() {
    show_ = Add("show", "Calls, sizes, who sends to whom, and a line of operations a rank", 1, 1);
    show_->add_option("--ranks-shown", ranks_shown_, "Ranks with a line (default: 8)");
    show_->add_option("--json", json_, "Write it as JSON; - is standard output, instead of text")
        ->type_name("FILE");
  }

  void AddCut() {
    cut_ = AddWithOutput("cut", "Some ranks, communicators, iterations or calls of a trace", 1, 1);
    cut_->add_option("--ranks", cut_ranks_, "Ranks that stay, e.g. 0-7,16; they are numbered anew");
    cut_->add_option("--communicator", communicators_,
                     "A communicator whose calls stay, by name; may be given again")
        ->allow_extra_args(false);
    cut_->add_option("--iterations", cut_iterations_,
                     "Iterations that stay, counted from 0, e.g. 2-4");
    cut_->add_option("--calls", cut_calls_,
                     "Calls that stay, counted from 0 on each communicator, e.g. 100-199");
  }

  void AddRetarget() {
    retarget_ = AddWithOutput("retarget", "A trace for another number of ranks", 1, 1);
    const auto add = [this](const char* name, auto& value, const char* what) {
      retarget_->add_option(name, value, what);
    };
    add("--tensor", from_.tensor, "Tensor parallel ranks of the trace (default: 1)");
    add("--data", from_.data, "Data parallel ranks of the trace (default: 1)");
    add("--pipeline", from_.pipeline, "Stages of the trace (default: 1)");
    add("--expert", from_.expert,
        "Expert parallel ranks of the trace, adjacent data parallel ones (default: 1)");
    add("--to-tensor", to_tensor_, "Tensor parallel ranks of the new trace (default: as before)");
    add("--to-data", to_data_, "Data parallel ranks of the new trace (default: as before)");
    add("--to-pipeline", to_pipeline_,
        "Stages of the new trace, which keep their layers (default: as before)");
    add("--to-expert", to_expert_, "Expert parallel ranks of the new trace (default: as before)");
  }

  void AddOthers() {
    anonymise_ =
        AddWithOutput("anonymise", "A trace without names of files and communicators", 1, 1);
    merge_ = AddWithOutput("merge", "Jobs side by side, as one", 2, 1024);
    diff_ =
        Add("diff", "Places at which ranks do other things; exit status 5 if there are any", 2, 2);
    export_ = Add("export", "Write a trace in another format", 1, 1);
    export_
        ->add_option("--format", format_,
                     "The format: chakra (a file a rank), goal, goal-binary or csv")
        ->required()
        ->check(ShowNames(ExportFormats()));
    export_
        ->add_option(
            "-o,--output", output_,
            "The file to write, - for standard output; for chakra PREFIX of PREFIX.RANK.et")
        ->required();
  }

  ExitStatus RunOn(std::vector<Trace>& traces, Diagnostics& diagnostics) {
    if (show_->parsed()) return Show(traces[0]);
    if (diff_->parsed()) return Diff(traces[0], traces[1]);
    if (export_->parsed()) return Export(traces[0], diagnostics);
    std::optional<Trace> made;
    if (cut_->parsed()) made = Cut(traces[0], diagnostics);
    if (retarget_->parsed()) {
      const TraceDivision to{.tensor = to_tensor_.value_or(from_.tensor),
                             .data = to_data_.value_or(from_.data),
                             .pipeline = to_pipeline_.value_or(from_.pipeline),
                             .expert = to_expert_.value_or(from_.expert)};
      made = RetargetTrace(traces[0], from_, to, traces_[0], diagnostics);
    }
    if (anonymise_->parsed()) made = AnonymizeTrace(std::move(traces[0]));
    if (merge_->parsed()) made = MergeTraces(traces, output_, diagnostics);
    if (!made) return kExitInput;
    WriteTrace(output_, *made);
    fmt::print(output_ == "-" ? stderr : stdout, "trace: {} ({}, {})\n", output_,
               Counted(made->rank_count, "rank"),
               Counted(made->operations.OperationCount(), "operation"));
    return kExitDone;
  }

  ExitStatus Show(const Trace& trace) const {
    const TraceSummary summary = SummarizeTrace(trace);
    if (json_ != "-") fmt::print("{}", SummaryText(trace, summary, ranks_shown_));
    if (!json_.empty()) WriteOutput(json_, SummaryJson(summary));
    return kExitDone;
  }

  static ExitStatus Diff(const Trace& a, const Trace& b) {
    const TraceDifferences differences = DiffTraces(a, b);
    for (const std::string& difference : differences.first) fmt::print("{}\n", difference);
    if (differences.count > differences.first.size()) {
      fmt::print("and {} more\n", differences.count - differences.first.size());
    }
    if (!differences.Any()) fmt::print("The ranks do the same.\n");
    return differences.Any() ? kExitDifference : kExitDone;
  }

  std::optional<Trace> Cut(const Trace& trace, Diagnostics& diagnostics) const {
    TraceCut cut;
    cut.communicators = communicators_;
    const auto range = [&](const char* option, const std::string& text, NumberRange& value) {
      if (text.empty()) return;
      if (const auto parsed = ParseRange(text)) {
        value = *parsed;
      } else {
        diagnostics.Error({.file = option}, "",
                          fmt::format("{} is no range (expected e.g. 2 or 2-4)", Quote(text)));
      }
    };
    range("--iterations", cut_iterations_, cut.iterations);
    range("--calls", cut_calls_, cut.calls);
    for (std::string_view rest = cut_ranks_; !rest.empty();) {
      const size_t comma = rest.find(',');
      NumberRange ranks;
      range("--ranks", std::string(rest.substr(0, comma)), ranks);
      if (ranks.last >= trace.rank_count) {
        diagnostics.Error({.file = "--ranks"}, "",
                          fmt::format("{} names ranks that do not exist (expected 0 to {})",
                                      Quote(rest.substr(0, comma)), trace.rank_count - 1));
        break;
      }
      for (uint64_t rank = ranks.first; rank <= ranks.last; ++rank) {
        cut.ranks.emplace_back(rank);
      }
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    if (diagnostics.HasErrors()) return std::nullopt;
    return CutTrace(trace, cut, traces_[0], diagnostics);
  }

  ExitStatus Export(const Trace& trace, Diagnostics& diagnostics) const {
    if (format_ == "chakra" && output_ == "-") {
      PrintError("--output: - has no room for a file a rank (expected a PREFIX)");
      return kExitInput;
    }
    if (format_ == "chakra") {
      const auto write = [](const std::string& name, const std::string& bytes) {
        WriteOutput(name, bytes);
      };
      return WriteChakra(trace, output_, traces_[0], write, diagnostics) ? kExitDone : kExitInput;
    }
    if (format_ == "goal" || format_ == "goal-binary") {
      const auto schedule = GoalOfTrace(trace, traces_[0], diagnostics);
      if (!schedule) return kExitInput;
      WriteOutput(output_, format_ == "goal" ? GoalTextOf(*schedule) : GoalBinaryOf(*schedule));
      return kExitDone;
    }
    if (format_ == "csv") {
      OutputFile file(output_);
      WriteTraceCsv(trace, [&](const std::string& text) { file.Write(text); });
      file.Close();
      return kExitDone;
    }
    diagnostics.Error({.file = "--format"}, "", UnknownName("format", format_, ExportFormats()));
    return kExitInput;
  }

  CLI::App* show_ = nullptr;
  CLI::App* cut_ = nullptr;
  CLI::App* retarget_ = nullptr;
  CLI::App* anonymise_ = nullptr;
  CLI::App* merge_ = nullptr;
  CLI::App* diff_ = nullptr;
  CLI::App* export_ = nullptr;
  std::vector<std::string> traces_;
  std::string output_;
  std::string json_;
  std::string format_;
  uint32_t ranks_shown_ = 8;
  std::string cut_ranks_;
  std::vector<std::string> communicators_;
  std::string cut_iterations_;
  std::string cut_calls_;
  TraceDivision from_;
  std::optional<uint32_t> to_tensor_;
  std::optional<uint32_t> to_data_;
  std::optional<uint32_t> to_pipeline_;
  std::optional<uint32_t> to_expert_;
};

}  // namespace

std::unique_ptr<Command> MakeTraceCommand(CLI::App& program) {
  return std::make_unique<TraceCommand>(program);
}

}  // namespace railyard
