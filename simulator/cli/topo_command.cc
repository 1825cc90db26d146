// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/cli/fabric_option.h"
#include "simulator/cli/listings.h"
#include "simulator/cli/output_options.h"
#include "simulator/cli/topo_comparison.h"
#include "simulator/cli/topo_comparison_page.h"
#include "simulator/cli/topo_description.h"
#include "simulator/cli/topo_picture.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/formats/nccl_topology_writer.h"
#include "topologies/formats/ns3_topology_writer.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/measures/network_flow.h"
#include "topologies/platforms/preset.h"
#include "topologies/prices/prices.h"

namespace railyard {
namespace {

class TopoCommand : public Command {
 public:
  explicit TopoCommand(CLI::App& program)
      : Command(program.add_subcommand("topo", "List, describe and compare fabrics")) {
    parser()->require_subcommand(1);
    list_ = parser()->add_subcommand("list", "The presets, one a line, name first");
    show_ = parser()->add_subcommand("show", "Describe and check a fabric");
    show_
        ->add_option(
            "FABRIC", fabric_,
            "A preset, a platform (its reference fabric), or a file: GraphML, Graphviz, an ns-3 "
            "topology.txt, NCCL's topology XML, or protobuf text: a Topology, what a scenario's "
            "fabric { } holds, or a scenario")
        ->required();
    compare_ = parser()->add_subcommand("compare", "Compare one job on each fabric, side by side");
    compare_->add_option("FABRIC", fabrics_, "Fabrics as topo show takes them; at least two")
        ->required()
        ->expected(2, 64);
    compare_
        ->add_option("--workload", workload_,
                     "A scenario, whose fabric is replaced by each of these")
        ->required()
        ->type_name("SCENARIO");
    compare_
        ->add_option("--set", sets_,
                     "Set one field of the scenario, as for run; may be given again")
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
    for (CLI::App* command : {show_, compare_}) {
      command->add_option("--nodes", nodes_, "Servers of a platform (default: 1)");
      command
          ->add_option("--prices", prices_,
                       "A price file (its schema: prices.proto); default: public-2024")
          ->type_name("FILE");
    }
    compare_->add_option("--json", json_, "Write the table as JSON; '-': to standard output")
        ->type_name("FILE");
    compare_->add_option("--html", html_, "Write the comparison as a page for a browser")
        ->type_name("FILE");
    show_->add_option("--json", json_, "Write the description as JSON; '-': to standard output")
        ->type_name("FILE");
    show_->add_option("--graphml", graphml_, "Write the fabric as GraphML, to be read again")
        ->type_name("FILE");
    show_->add_option("--text", text_, "Write the fabric as protobuf text, a Topology")
        ->type_name("FILE");
    show_->add_option("--dot", dot_, "Write a picture for Graphviz, to be read again as well")
        ->type_name("FILE");
    show_
        ->add_option("--picture", picture_, "Write nodes and links as JSON, for programs that draw")
        ->type_name("FILE");
    show_
        ->add_option("--ns3", ns3_,
                     "Write the fabric as the topology.txt of ns-3's RDMA simulators (HPCC, SimAI)")
        ->type_name("FILE");
    show_->add_option("--nccl", nccl_, "Write the first server as NCCL's topology XML")
        ->type_name("FILE");
    CLI::Option* const from =
        show_
            ->add_option("--flow-from", flow_from_,
                         "Servers from which the maximum flow goes, \"0-3,8\"")
            ->type_name("SERVERS");
    CLI::Option* const to =
        show_->add_option("--flow-to", flow_to_, "Servers to which the flow goes")
            ->type_name("SERVERS");
    from->needs(to);
    to->needs(from);
  }

  ExitStatus Run() override {
    if (list_->parsed()) {
      PrintListing(ListedPresets());
      return kExitDone;
    }
    return show_->parsed() ? Show() : Compare();
  }

 private:
  ExitStatus Show() const {
    Diagnostics diagnostics;
    const auto shown = LoadShownFabric(fabric_, nodes_, diagnostics);
    const FabricGraph* const fabric = shown ? &shown->graph : nullptr;
    const auto prices = ReadPrices(diagnostics);
    const auto flow = fabric ? AskFlow(*fabric, diagnostics) : std::nullopt;
    std::string ns3;
    std::string nccl;
    if (fabric && !ns3_.empty()) {
      Refuse("--ns3", "an ns-3 topology.txt", ToNs3Topology(*fabric, ns3), diagnostics);
    }
    if (fabric && !nccl_.empty()) {
      Refuse("--nccl", "NCCL's topology XML", ToNcclTopology(*fabric, ServerIndex{0}, nccl),
             diagnostics);
    }
    CheckOutputs({{"--json", json_},
                  {"--graphml", graphml_},
                  {"--text", text_},
                  {"--dot", dot_},
                  {"--picture", picture_},
                  {"--ns3", ns3_},
                  {"--nccl", nccl_}},
                 {fabric_, prices_}, diagnostics);
    const bool is_described = !(graphml_ + text_ + dot_ + ns3_ + nccl_).empty();
    if (shown && is_described && shown->calibration != PlatformCalibration()) {
      diagnostics.Warning({.file = fabric_}, "calibration",
                          "is not in the files written, which describe the fabric only");
    }
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!fabric || !prices || diagnostics.HasErrors()) return kExitInput;
    TopoDescription description = DescribeFabric(*fabric, *prices);
    description.flow = flow;
    const bool is_stdout_taken = json_ == "-" || graphml_ == "-" || text_ == "-" || dot_ == "-" ||
                                 ns3_ == "-" || nccl_ == "-" || picture_ == "-";
    if (!is_stdout_taken) fmt::print("{}", ToText(description));
    if (!json_.empty()) WriteOutput(json_, ToJson(description));
    if (!graphml_.empty()) WriteOutput(graphml_, ToGraphMl(*fabric));
    if (!text_.empty()) WriteOutput(text_, ToTopologyText(*fabric));
    if (!dot_.empty()) WriteOutput(dot_, ToDot(*fabric));
    if (!picture_.empty()) WriteOutput(picture_, PictureJson(*fabric));
    if (!ns3_.empty()) WriteOutput(ns3_, ns3);
    if (!nccl_.empty()) WriteOutput(nccl_, nccl);
    // A fabric on which no job can run, or may hang, is an error even if its description is valid.
    const bool is_wrong = std::any_of(
        description.preflight.begin(), description.preflight.end(),
        [](const auto& finding) { return finding.severity == PreflightSeverity::kError; });
    return is_wrong ? kExitInput : kExitDone;
  }

  std::optional<Prices> ReadPrices(Diagnostics& diagnostics) const {
    return prices_.empty() ? PublicPrices() : LoadPrices(prices_, diagnostics);
  }

  static void Refuse(const char* option, const char* format, const std::string& why,
                     Diagnostics& diagnostics) {
    if (why.empty()) return;
    diagnostics.Error({.file = option}, "", fmt::format("{} cannot say it: {}", format, why));
  }

  // "0-3,8": server numbers and ranges of them.
  static std::vector<ServerIndex> ReadServers(const char* option, const std::string& text,
                                              uint32_t servers, Diagnostics& diagnostics) {
    std::vector<bool> is_chosen(servers);
    const char* at = text.data();
    const char* const end = at + text.size();
    bool is_right = !text.empty();
    while (is_right) {
      uint32_t first = 0;
      auto read = std::from_chars(at, end, first);
      uint32_t last = first;
      if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
        read = std::from_chars(read.ptr + 1, end, last);
      }
      is_right = read.ec == std::errc() && first <= last && last < servers;
      for (uint32_t i = first; is_right && i <= last; ++i) is_chosen[i] = true;
      if (read.ptr == end) break;
      is_right = is_right && *read.ptr == ',';
      at = read.ptr + 1;
    }
    if (!is_right) {
      diagnostics.Error({.file = option}, "",
                        fmt::format("{} are no servers of it (expected e.g. \"0-{}\")", Quote(text),
                                    servers - 1));
    }
    std::vector<ServerIndex> chosen;
    for (ServerIndex i{0}; i < servers; ++i) {
      if (is_chosen[i]) chosen.push_back(i);
    }
    return chosen;
  }

  std::optional<AskedFlow> AskFlow(const FabricGraph& fabric, Diagnostics& diagnostics) const {
    if (flow_from_.empty() && flow_to_.empty()) return std::nullopt;
    const int errors_before = diagnostics.error_count();
    const uint32_t servers = fabric.server_count();
    const auto from = ReadServers("--flow-from", flow_from_, servers, diagnostics);
    const auto to = ReadServers("--flow-to", flow_to_, servers, diagnostics);
    std::vector<ServerIndex> both;
    std::set_intersection(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(both));
    if (!both.empty()) {
      diagnostics.Error({.file = "--flow-to"}, "",
                        fmt::format("server {} is in --flow-from as well", both.front()));
    }
    if (diagnostics.error_count() > errors_before) return std::nullopt;
    const FabricGraph* at = &fabric;
    std::optional<FabricGraph> first;
    if (fabric.circuits) at = &first.emplace(AtSlot(fabric, 0));
    return AskedFlow{.from = flow_from_, .to = flow_to_, .bps = MaxFlowBps(*at, from, to)};
  }

  ExitStatus Compare() const {
    Diagnostics diagnostics;
    std::vector<ShownFabric> fabrics;
    const bool has_platform = std::any_of(fabrics_.begin(), fabrics_.end(), &IsPlatformArgument);
    for (const std::string& argument : fabrics_) {
      const uint32_t nodes = has_platform && !IsPlatformArgument(argument) ? 1 : nodes_;
      if (auto fabric = LoadShownFabric(argument, nodes, diagnostics)) {
        fabrics.push_back(std::move(*fabric));
      }
    }
    const auto prices = ReadPrices(diagnostics);
    for (const std::string& set : sets_) {
      if (set.substr(0, set.find_first_of(".=")) != "fabric") continue;
      diagnostics.Error(SetLocation(set), "fabric",
                        "has no effect, for every row is of another fabric (expected another "
                        "field)");
    }
    std::vector<std::string> inputs = fabrics_;
    inputs.insert(inputs.end(), {workload_, prices_});
    CheckOutputs({{"--json", json_}, {"--html", html_}}, inputs, diagnostics);
    if (std::error_code error; !std::filesystem::is_regular_file(workload_, error)) {
      diagnostics.Error({.file = workload_}, "", "there is no such file");
    }
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (diagnostics.HasErrors()) return kExitInput;
    ExitStatus status = kExitDone;
    std::vector<ComparedRun> runs;
    for (const ShownFabric& fabric : fabrics) {
      runs.push_back(RunOnFabric(fabric, workload_, sets_, *prices));
      status = std::max(status, runs.back().exit_status);
    }
    if (json_ != "-") fmt::print("{}", ComparisonTable(runs));
    if (!json_.empty()) WriteOutput(json_, ComparisonJson(runs));
    if (!html_.empty()) WriteOutput(html_, FabricsPage(runs, workload_));
    return status;
  }

  CLI::App* list_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* compare_ = nullptr;
  std::string fabric_;
  std::string json_;
  std::string html_;
  std::string graphml_;
  std::string text_;
  std::string dot_;
  std::string picture_;
  std::string ns3_;
  std::string nccl_;
  std::string prices_;
  std::string flow_from_;
  std::string flow_to_;
  std::vector<std::string> fabrics_;
  std::string workload_;
  std::vector<std::string> sets_;
  uint32_t nodes_ = 1;
};

}  // namespace

std::unique_ptr<Command> MakeTopoCommand(CLI::App& program) {
  return std::make_unique<TopoCommand>(program);
}

}  // namespace railyard
