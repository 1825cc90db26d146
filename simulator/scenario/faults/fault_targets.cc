// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_targets.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "simulator/scenario/schema/scenario.pb.h"
#include "topologies/graph/cable_name.h"

namespace railyard {
namespace {

// Looking for the closest of many names is slow, and the first guesses are the useful ones: after
// this many comparisons unknown names are reported without a guess.
constexpr size_t kComparedNamesMax = 1'000'000;
constexpr std::string_view kExpectedCable =
    R"( (expected the two devices of a cable, e.g. "server1/nic3--leaf3"))";

bool IsPattern(const std::string& name) { return name.find('*') != std::string::npos; }

}  // namespace

bool FitsPattern(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t star = std::string_view::npos;
  size_t after_star = 0;
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      after_star = i;
    } else if (at < pattern.size() && pattern[at] == name[i]) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++after_star;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

FaultTargets::FaultTargets(const ProtoCursor& scenario, const FabricGraph* fabric,
                           Diagnostics& diagnostics)
    : scenario_(scenario), fabric_(fabric), diagnostics_(diagnostics) {
  for (int i = 0; i < scenario.Size("fault_domains"); ++i) {
    const ProtoCursor domain = scenario.Child("fault_domains", i);
    if (!domain.Has("name")) {
      domain.Missing(diagnostics, "name", R"(e.g. "rack3")");
      continue;
    }
    const std::string name = domain.Text("name", "");
    if (!domains_.try_emplace(name, i).second) {
      domain.Error(diagnostics, "name",
                   fmt::format("another domain is called {} as well", Quote(name)));
    }
  }
}

std::vector<FaultTarget> FaultTargets::Load(const ProtoCursor& fault) {
  std::vector<FaultTarget> targets;
  const int named = fault.Has("link") + fault.Has("device") + fault.Has("domain");
  if (named == 0) {
    fault.Missing(diagnostics_, "link",
                  R"(a cable's name, e.g. "server1/nic3--leaf3", or device or domain)");
  }
  if (named > 1) {
    fault.Error(diagnostics_, fault.Has("domain") ? "domain" : "device",
                "stands beside another target (expected one of link, device and domain)");
  }
  if (named != 1 || fabric_ == nullptr) return targets;
  const int errors_before = diagnostics_.error_count();
  if (fault.Has("link")) AddLinks(fault, "link", -1, fault.Text("link", ""), targets);
  if (fault.Has("device")) AddDevices(fault, "device", -1, fault.Text("device", ""), targets);
  if (fault.Has("domain")) AddDomain(fault, targets);
  if (diagnostics_.error_count() > errors_before) targets.clear();
  return targets;
}

void FaultTargets::AddDomain(const ProtoCursor& fault, std::vector<FaultTarget>& targets) {
  const std::string name = fault.Text("domain", "");
  const auto it = domains_.find(name);
  if (it == domains_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, index] : domains_) names.push_back(known);
    fault.Error(diagnostics_, "domain", UnknownName("domain", name, names));
    return;
  }
  const ProtoCursor domain = scenario_.Child("fault_domains", it->second);
  const auto& message = domain.As<protos::FaultDomain>();
  for (int i = 0; i < message.links_size(); ++i) {
    AddLinks(domain, "links", i, message.links(i), targets);
  }
  for (int i = 0; i < message.devices_size(); ++i) {
    AddDevices(domain, "devices", i, message.devices(i), targets);
  }
  if (message.links_size() + message.devices_size() == 0) {
    domain.Missing(diagnostics_, "links", "links or devices");
  }
}

bool FaultTargets::IsCircuit(uint32_t cable) const {
  return fabric_->circuits && fabric_->circuits->slots_of_cable.contains(cable);
}

FaultTarget FaultTargets::CableFrom(uint32_t cable, DeviceId from, const std::string& name) const {
  const Cable& of_fabric = fabric_->cables()[cable];
  FaultTarget target{.name = name, .device = {}, .forward = {}, .backward = {}};
  const bool is_forward = fabric_->link_source(of_fabric.forward) == from;
  target.forward = {is_forward ? of_fabric.forward : of_fabric.backward};
  target.backward = {is_forward ? of_fabric.backward : of_fabric.forward};
  return target;
}

// All cables of a device; of a NIC those to the network: what it does not reach it has no use for.
FaultTarget FaultTargets::DeviceTarget(DeviceId device) const {
  FaultTarget target{
      .name = fabric_->device(device).name, .device = device, .forward = {}, .backward = {}};
  const bool is_nic = fabric_->device(device).kind == DeviceKind::kNic;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(device, fabric_->graph()))) {
    const LinkProperties& link = fabric_->graph()[edge];
    if ((is_nic && link.tier == Tier::kHost) || IsCircuit(link.cable)) continue;
    const LinkId id = fabric_->link_of_edge(edge);
    target.forward.push_back(id);
    target.backward.push_back(fabric_->ReverseLink(id));
  }
  return target;
}

// This lets one scenario's faults fit fabrics whose switches have other names.
std::optional<uint32_t> FaultTargets::FirstCableOfNic(const std::string& name) const {
  const std::optional<DeviceId> nic = fabric_->FindDevice(name);
  if (!nic || fabric_->device(*nic).kind != DeviceKind::kNic) return std::nullopt;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(*nic, fabric_->graph()))) {
    const LinkProperties& link = fabric_->graph()[edge];
    if (link.tier != Tier::kHost) return link.cable;
  }
  return std::nullopt;
}

std::optional<FaultTarget> FaultTargets::Find(const std::string& name) const {
  if (const auto cable = fabric_->FindCable(name)) {
    if (IsCircuit(*cable)) return std::nullopt;
    const LinkId forward = fabric_->cables()[*cable].forward;
    const bool is_reversed = fabric_->cables()[*cable].name != name;
    const DeviceId from =
        is_reversed ? fabric_->link_target(forward) : fabric_->link_source(forward);
    return CableFrom(*cable, from, name);
  }
  if (const auto device = fabric_->FindDevice(name)) return DeviceTarget(*device);
  return std::nullopt;
}

// A pattern of one device that fits NICs is of their first cables, as a NIC's name is.
void FaultTargets::AddLinksThatFit(const std::string& pattern, std::vector<FaultTarget>& targets) {
  const size_t before = targets.size();
  if (pattern.find(kCableSeparator) == std::string::npos) {
    for (DeviceId id{0}; id < fabric_->device_count(); ++id) {
      const std::string& name = fabric_->device(id).name;
      if (fabric_->device(id).kind != DeviceKind::kNic || !FitsPattern(pattern, name)) continue;
      const std::optional<uint32_t> cable = FirstCableOfNic(name);
      if (!cable || IsCircuit(*cable)) continue;
      targets.push_back(CableFrom(*cable, id, fabric_->cables()[*cable].name));
    }
  }
  if (targets.size() > before) return;
  for (uint32_t cable = 0; cable < fabric_->cables().size(); ++cable) {
    const Cable& known = fabric_->cables()[cable];
    if (IsCircuit(cable)) continue;
    if (FitsPattern(pattern, known.name)) {
      targets.push_back(CableFrom(cable, fabric_->link_source(known.forward), known.name));
    } else if (FitsPattern(pattern, WithOtherEndFirst(known.name))) {
      targets.push_back(CableFrom(cable, fabric_->link_target(known.forward), known.name));
    }
  }
}

void FaultTargets::AddLinks(const ProtoCursor& cursor, const char* field, int index,
                            const std::string& name, std::vector<FaultTarget>& targets) {
  if (IsPattern(name)) {
    const size_t before = targets.size();
    AddLinksThatFit(name, targets);
    if (targets.size() == before) {
      cursor.Error(diagnostics_, field,
                   fmt::format("{} fits no cable{}", Quote(name), kExpectedCable), index);
    }
    return;
  }
  std::optional<uint32_t> cable = fabric_->FindCable(name);
  const std::optional<uint32_t> cable_of_nic = cable ? std::nullopt : FirstCableOfNic(name);
  if (cable_of_nic) cable = cable_of_nic;
  if (!cable) {
    compared_names_ += fabric_->cables().size();
    std::string what = compared_names_ > kComparedNamesMax
                           ? UnknownName("link", name, {})
                           : UnknownName("link", name, CableNames());
    if (!what.ends_with(')')) what += kExpectedCable;
    cursor.Error(diagnostics_, field, std::move(what), index);
    return;
  }
  if (IsCircuit(*cable)) {
    cursor.Error(diagnostics_, field,
                 fmt::format("{} is an optical circuit, which comes and goes by its timetable "
                             "(expected another cable)",
                             Quote(name)),
                 index);
    return;
  }
  const std::string& own_name = fabric_->cables()[*cable].name;
  // FORWARD is from the device that the scenario names first.
  const LinkId forward = fabric_->cables()[*cable].forward;
  const DeviceId from = cable_of_nic       ? *fabric_->FindDevice(name)
                        : own_name == name ? fabric_->link_source(forward)
                                           : fabric_->link_target(forward);
  targets.push_back(CableFrom(*cable, from, own_name));
}

void FaultTargets::AddDevices(const ProtoCursor& cursor, const char* field, int index,
                              const std::string& name, std::vector<FaultTarget>& targets) {
  if (const auto device = fabric_->FindDevice(name)) {
    targets.push_back(DeviceTarget(*device));
    return;
  }
  const size_t before = targets.size();
  for (DeviceId id{0}; IsPattern(name) && id < fabric_->device_count(); ++id) {
    if (FitsPattern(name, fabric_->device(id).name)) targets.push_back(DeviceTarget(id));
  }
  if (targets.size() > before) return;
  compared_names_ += fabric_->device_count();
  std::string what = IsPattern(name) || compared_names_ > kComparedNamesMax
                         ? UnknownName("device", name, {})
                         : UnknownName("device", name, DeviceNames());
  if (!what.ends_with(')')) what += R"( (expected e.g. "server1/nic3", "leaf3" or "leaf*"))";
  cursor.Error(diagnostics_, field, std::move(what), index);
}

std::vector<GpuIndex> FaultTargets::LoadGpus(const ProtoCursor& message, const char* field) {
  std::vector<GpuIndex> gpus;
  if (fabric_ == nullptr) return gpus;
  const std::string name = message.Text(field, "");
  for (GpuIndex gpu{0}; gpu < fabric_->gpus().size(); ++gpu) {
    if (FitsPattern(name, fabric_->device(fabric_->gpus()[gpu]).name)) gpus.push_back(gpu);
  }
  if (gpus.empty()) {
    message.Error(diagnostics_, field,
                  fmt::format(R"({} fits no GPU (expected e.g. "server1/gpu3" or "server1/gpu*"))",
                              Quote(name)));
  }
  return gpus;
}

const std::vector<std::string>& FaultTargets::CableNames() {
  if (cable_names_.empty()) {
    for (const Cable& cable : fabric_->cables()) cable_names_.push_back(cable.name);
  }
  return cable_names_;
}

std::vector<std::string> FaultTargets::DeviceNames() const {
  std::vector<std::string> names;
  for (DeviceId id{0}; id < fabric_->device_count(); ++id) {
    names.push_back(fabric_->device(id).name);
  }
  return names;
}

}  // namespace railyard
