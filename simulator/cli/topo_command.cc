// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/output_file.h"
#include "simulator/cli/command.h"
#include "simulator/cli/topo_comparison.h"
#include "simulator/cli/topo_description.h"
#include "simulator/diagnostics/diagnostics.h"
#include "topologies/fabric_argument_loader.h"
#include "topologies/graph_writer.h"
#include "topologies/preset.h"

namespace railyard {
namespace {

// To standard output for "-"; else the file is there complete or not at all.
void Put(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  const std::string unfinished = path + ".part";
  OutputFile file(unfinished);
  file.Write(text);
  file.Close();
  std::filesystem::rename(unfinished, path);
}

class TopoCommand : public Command {
 public:
  explicit TopoCommand(CLI::App& program)
      : Command(program.add_subcommand("topo", "List, describe and compare fabrics")) {
    parser()->require_subcommand(1);
    list_ = parser()->add_subcommand("list", "The presets, one a line, name first");
    show_ = parser()->add_subcommand("show", "What a fabric is, what it can carry, what is wrong");
    show_
        ->add_option("FABRIC", fabric_,
                     "A preset, a GraphML file (*.graphml, *.xml), or protobuf text: a Topology or "
                     "what a scenario's fabric { } holds")
        ->required();
    compare_ = parser()->add_subcommand("compare", "The same job on each fabric, side by side");
    compare_->add_option("FABRIC", fabrics_, "As of show; at least two")
        ->required()
        ->expected(2, 64);
    compare_
        ->add_option("--workload", workload_,
                     "A scenario, whose fabric is replaced by each of these")
        ->required()
        ->type_name("SCENARIO");
    compare_->add_option("--json", json_, "Write the table as JSON; '-': to standard output")
        ->type_name("FILE");
    show_->add_option("--json", json_, "Write the description as JSON; '-': to standard output")
        ->type_name("FILE");
    show_->add_option("--graphml", graphml_, "Write the fabric as GraphML, to be read again")
        ->type_name("FILE");
    show_->add_option("--text", text_, "Write the fabric as protobuf text, a Topology")
        ->type_name("FILE");
    show_->add_option("--dot", dot_, "Write a picture for Graphviz")->type_name("FILE");
  }

  ExitStatus Run() override {
    if (list_->parsed()) return List();
    return show_->parsed() ? Show() : Compare();
  }

 private:
  static ExitStatus List() {
    size_t width = 0;
    for (const Preset& preset : Presets()) width = std::max(width, preset.name.size());
    for (const Preset& preset : Presets()) {
      fmt::print("{:<{}}  {}\n", preset.name, width, preset.description);
    }
    return kExitDone;
  }

  ExitStatus Show() const {
    Diagnostics diagnostics;
    const auto fabric = LoadFabricArgument(fabric_, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!fabric) return kExitInput;
    const TopoDescription description = DescribeFabric(*fabric);
    const bool is_stdout_taken = json_ == "-" || graphml_ == "-" || text_ == "-" || dot_ == "-";
    if (!is_stdout_taken) fmt::print("{}", ToText(description));
    if (!json_.empty()) Put(json_, ToJson(description));
    if (!graphml_.empty()) Put(graphml_, ToGraphMl(*fabric));
    if (!text_.empty()) Put(text_, ToTopologyText(*fabric));
    if (!dot_.empty()) Put(dot_, ToDot(*fabric));
    return kExitDone;
  }

  ExitStatus Compare() const {
    Diagnostics diagnostics;
    std::vector<FabricGraph> fabrics;
    for (const std::string& argument : fabrics_) {
      if (auto fabric = LoadFabricArgument(argument, diagnostics)) {
        fabrics.push_back(std::move(*fabric));
      }
    }
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (diagnostics.HasErrors()) return kExitInput;
    ExitStatus status = kExitDone;
    std::vector<ComparedRun> runs;
    for (const FabricGraph& fabric : fabrics) {
      runs.push_back(RunOnFabric(fabric, workload_));
      status = std::max(status, runs.back().exit_status);
    }
    if (json_ != "-") fmt::print("{}", ComparisonTable(runs));
    if (!json_.empty()) Put(json_, ComparisonJson(runs));
    return status;
  }

  CLI::App* list_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* compare_ = nullptr;
  std::string fabric_;
  std::string json_;
  std::string graphml_;
  std::string text_;
  std::string dot_;
  std::vector<std::string> fabrics_;
  std::string workload_;
};

}  // namespace

std::unique_ptr<Command> MakeTopoCommand(CLI::App& program) {
  return std::make_unique<TopoCommand>(program);
}

}  // namespace railyard
