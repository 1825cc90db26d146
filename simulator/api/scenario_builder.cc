// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/scenario_builder.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "simulator/engine/virtual_time.h"
#include "simulator/scenario/load/scenario_loader.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/text_proto/text_proto_set.h"

namespace railyard {
namespace {

// By Operation: railyard.protos.ProgramCollective.Kind.
constexpr std::array<const char*, 10> kOperationNames = {
    "ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "BROADCAST", "REDUCE",
    "ALL_TO_ALL", "GATHER",     "SCATTER",        "SEND_RECV", "PERMUTATION"};
// By Fault::Kind: railyard.protos.Fault.Kind.
constexpr std::array<const char*, 8> kFaultNames = {
    "LINK_DOWN", "SWITCH_REBOOT", "DEGRADE",         "LOSS",
    "DELAY",     "PAUSE_STORM",   "BACKGROUND_LOAD", "STRAGGLER"};

void Report(const Diagnostics& from, Diagnostics& to) {
  for (const Finding& finding : from.findings()) {
    if (finding.severity == Severity::kError) {
      to.Error(finding.where, finding.field, finding.what);
    } else if (finding.severity == Severity::kWarning) {
      to.Warning(finding.where, finding.field, finding.what);
    } else {
      to.Note(finding.where, finding.field, finding.what);
    }
  }
}

}  // namespace

struct ScenarioBuilder::Made {
  explicit Made(const std::string& name) : file(EmptyScenario(name)) {}
  Made(const Made& other)
      : file(CopyOf(other.file)),
        parts(other.parts),
        findings(other.findings),
        is_unreadable(other.is_unreadable) {}
  Made& operator=(const Made&) = delete;
  ~Made() = default;

  static TextProtoFile CopyOf(const TextProtoFile& other) {
    TextProtoFile copy = EmptyScenario(other.path);
    copy.is_text = other.is_text;
    copy.message->CopyFrom(*other.message);
    copy.sets = other.sets;
    copy.reach = other.reach;
    copy.sets_of_files = other.sets_of_files;
    copy.places = other.places;
    copy.mistakes = other.mistakes;
    return copy;
  }

  TextProtoFile file;
  ScenarioParts parts;
  Diagnostics findings;        // of what has been read and set
  bool is_unreadable = false;  // a file, so that nothing is known of what it says
};

ScenarioBuilder::ScenarioBuilder(const std::string& name) : made_(std::make_unique<Made>(name)) {
  Set("name", name);
}

ScenarioBuilder ScenarioBuilder::Read(const std::string& path,
                                      const std::vector<std::string>& sets) {
  auto made = std::make_unique<Made>(path);
  if (auto file = ReadScenarioText(path, sets, made->findings)) {
    made->file = std::move(*file);
  } else {
    made->is_unreadable = true;
  }
  return ScenarioBuilder(std::move(made));
}

ScenarioBuilder::ScenarioBuilder(std::unique_ptr<Made> made) : made_(std::move(made)) {}

ScenarioBuilder::ScenarioBuilder(const ScenarioBuilder& other)
    : made_(std::make_unique<Made>(*other.made_)) {}
ScenarioBuilder::ScenarioBuilder(ScenarioBuilder&& other) noexcept = default;
ScenarioBuilder& ScenarioBuilder::operator=(ScenarioBuilder other) noexcept {
  made_ = std::move(other.made_);
  return *this;
}
ScenarioBuilder::~ScenarioBuilder() = default;

ScenarioBuilder& ScenarioBuilder::Preset(const std::string& name) {
  return Set("fabric.preset", name);
}

ScenarioBuilder& ScenarioBuilder::FabricFile(const std::string& path) {
  return Set("fabric.file", path);
}

ScenarioBuilder& ScenarioBuilder::Fabric(const scenario::RailOptimized& fabric) {
  Set("fabric.rail_optimized");
  Set("fabric.rail_optimized.servers", fabric.servers);
  const auto set = [this](const char* field, const auto& value) {
    if (value) Set(std::string("fabric.rail_optimized.") + field, *value);
  };
  set("gpus_per_server", fabric.gpus_per_server);
  set("servers_per_leaf", fabric.servers_per_leaf);
  set("spines", fabric.spines);
  set("nic_rate", fabric.nic_rate);
  set("leaf_spine_rate", fabric.leaf_spine_rate);
  return *this;
}

ScenarioBuilder& ScenarioBuilder::Fabric(
    const std::vector<scenario::Servers>& rail_optimized_servers) {
  Set("fabric.rail_optimized");
  for (size_t i = 0; i < rail_optimized_servers.size(); ++i) {
    const scenario::Servers& servers = rail_optimized_servers[i];
    const std::string path = fmt::format("fabric.rail_optimized.mixed_servers[{}].", i);
    Set(path + "platform", servers.platform);
    Set(path + "count", servers.count);
    if (servers.gpus) Set(path + "gpus", *servers.gpus);
    if (servers.nics) Set(path + "nics", *servers.nics);
    if (servers.nic_rate) Set(path + "nic_rate", *servers.nic_rate);
    if (servers.nic_ports) Set(path + "nic_ports", *servers.nic_ports);
    if (servers.cpu) Set(path + "cpu", *servers.cpu);
  }
  return *this;
}

ScenarioBuilder& ScenarioBuilder::Fabric(std::shared_ptr<const FabricGraph> graph) {
  made_->parts.fabric = std::move(graph);
  return FabricFile(kFabricInMemory);
}

ScenarioBuilder& ScenarioBuilder::Add(const scenario::Collective& collective) {
  const std::string path =
      fmt::format("workload.program.collectives[{}].", Size("workload.program.collectives"));
  Set(path + "kind", kOperationNames[static_cast<size_t>(collective.operation)]);
  Set(path + "bytes", collective.size);
  const auto set = [&](const char* field, const auto& value) {
    if (value) Set(path + field, *value);
  };
  set("root", collective.root);
  set("repeat", collective.repeat);
  set("groups_of", collective.groups_of);
  set("stride", collective.stride);
  set("compute_before", collective.compute_before);
  set("in_place", collective.in_place);
  return *this;
}

ScenarioBuilder& ScenarioBuilder::NcclLogs(const std::vector<std::string>& paths) {
  Set("workload.nccl_log");
  for (size_t i = 0; i < paths.size(); ++i) {
    Set(fmt::format("workload.nccl_log.files[{}]", i), paths[i]);
  }
  return *this;
}

ScenarioBuilder& ScenarioBuilder::TraceFile(const std::string& path) {
  return Set("workload.trace", path);
}

ScenarioBuilder& ScenarioBuilder::PlanFile(const std::string& path) {
  return Set("workload.plan", path);
}

ScenarioBuilder& ScenarioBuilder::Calls(std::shared_ptr<const Trace> calls) {
  made_->parts.calls = std::move(calls);
  return TraceFile(kCallsInMemory);
}

ScenarioBuilder& ScenarioBuilder::Add(const scenario::Fault& fault) {
  const std::string path = fmt::format("faults[{}].", Size("faults"));
  Set(path + "kind", kFaultNames[static_cast<size_t>(fault.kind)]);
  if (!fault.name.empty()) Set(path + "name", fault.name);
  if (!fault.link.empty()) Set(path + "link", fault.link);
  if (!fault.device.empty()) Set(path + "device", fault.device);
  if (!fault.domain.empty()) Set(path + "domain", fault.domain);
  if (fault.at) Set(path + "at", *fault.at);
  if (fault.until) Set(path + "until", *fault.until);
  return *this;
}

ScenarioBuilder& ScenarioBuilder::Set(std::string_view field, const FieldValue& value) {
  SetValue(made_->file, std::string(field), value.held(), made_->findings);
  return *this;
}

bool ScenarioBuilder::Has(std::string_view field) const {
  return made_->file.places.contains(field);
}

std::string ScenarioBuilder::ToText() const {
  std::string text;
  google::protobuf::TextFormat::PrintToString(*made_->file.message, &text);
  return text;
}

int ScenarioBuilder::Size(std::string_view field) const {
  int size = 0;
  while (Has(fmt::format("{}[{}]", field, size))) ++size;
  return size;
}

std::shared_ptr<const Scenario> ScenarioBuilder::Build(Diagnostics& diagnostics) const {
  InitVirtualTime();
  Report(made_->findings, diagnostics);
  if (made_->is_unreadable) return nullptr;
  const bool was_wrong = made_->findings.HasErrors();
  std::shared_ptr<const Scenario> scenario = LoadScenario(made_->file, diagnostics, made_->parts);
  return was_wrong ? nullptr : scenario;
}

std::shared_ptr<const Scenario> ReadScenario(const std::string& path,
                                             const std::vector<std::string>& sets,
                                             Diagnostics& diagnostics,
                                             std::shared_ptr<const Trace>* calls) {
  InitVirtualTime();
  return LoadScenario(path, sets, diagnostics, calls);
}

}  // namespace railyard
