// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/ns3/nic_list.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ns3/abort.h>
#include <ns3/double.h>
#include <ns3/object-factory.h>

#include "simulator/transport/congestion/congestion_control_base.h"
#include "simulator/transport/congestion/cubic.h"
#include "simulator/transport/nic/nic_kinds.h"

namespace railyard {
namespace {

// Both ends of a queue pair must agree on these, and the scenario's checks depend on them.
constexpr std::array<std::string_view, 4> kOfAllNics = {
    "MtuBytes", "Recovery", "ReorderTolerancePackets", "LinkAggregation"};

bool IsControl(const ns3::ObjectFactory& factory) {
  return factory.IsTypeIdSet() && factory.GetTypeId().IsChildOf(CongestionControl::GetTypeId()) &&
         factory.GetTypeId().HasConstructor();
}

// Returns the values of an object's attributes, as texts in the order of its type. Different values
// have different texts; ns-3's own lose digits.
std::vector<std::string> AttributesOf(const ns3::Object& object) {
  const ns3::TypeId type = object.GetInstanceTypeId();
  std::vector<std::string> texts;
  for (size_t i = 0; i < type.GetAttributeN(); ++i) {
    const ns3::TypeId::AttributeInformation attribute = type.GetAttribute(i);
    const ns3::Ptr<ns3::AttributeValue> value = attribute.checker->Create();
    object.GetAttribute(attribute.name, *value);
    const auto real = ns3::DynamicCast<ns3::DoubleValue>(value);
    const auto factory = ns3::DynamicCast<ns3::ObjectFactoryValue>(value);
    if (real != nullptr) {
      texts.push_back(fmt::format("{:a}", real->Get()));
    } else if (factory != nullptr && IsControl(factory->Get())) {
      const auto control = factory->Get().Create<CongestionControl>();
      texts.push_back(fmt::format("{}[{}]", control->GetInstanceTypeId().GetName(),
                                  fmt::join(AttributesOf(*control), "|")));
    } else {
      texts.push_back(value->SerializeToString(attribute.checker));
    }
  }
  return texts;
}

std::vector<std::string> AttributesOfSettings(const NicSettings& settings) {
  const auto nic = ns3::CreateObject<Nic>();
  nic->SetSettings(settings);
  return AttributesOf(*nic);
}

void CheckControl(const ns3::ObjectFactory& factory, const std::string& name) {
  NS_ABORT_MSG_IF(!IsControl(factory) || factory.GetTypeId() == Cubic::GetTypeId(),
                  name << ": CongestionControl is no congestion control of RDMA");
  const std::string why = factory.Create<CongestionControl>()->Contradiction();
  NS_ABORT_MSG_IF(!why.empty(), name << ": CongestionControl: " << why);
}

}  // namespace

NicList::NicList(const FabricGraph& graph, const NetworkStackSettings& stated)
    : graph_(graph), stated_(stated), nics_(MakeNics(graph, stated.nic, stated.nic_variants)) {
  for (DeviceId device{0}; device < nics_.size(); ++device) {
    if (nics_[device] == nullptr) continue;
    devices_.push_back(device);
    before_.push_back(AttributesOf(*nics_[device]));
  }
}

bool NicList::HasChanged() const {
  for (uint32_t i = 0; i < size(); ++i) {
    if (AttributesOf(*nic(i)) != before_[i]) return true;
  }
  return false;
}

void NicList::CheckAttributes(DeviceId nic) const {
  const std::string& name = graph_.device(nic).name;
  const NicSettings& settings = nics_[nic]->settings();
  NS_ABORT_MSG_IF(settings.window_bytes < settings.WindowBytesMin() ||
                      settings.window_bytes > settings.WindowBytesMax(),
                  name << ": a WindowBytes of " << settings.window_bytes << " (expected "
                       << settings.WindowBytesMin() << ", AckEveryPackets of MtuBytes, to "
                       << settings.WindowBytesMax() << ")");
  CheckControl(settings.congestion_control, name);
}

NetworkStackSettings NicList::Settings() const {
  NetworkStackSettings settings = stated_;
  settings.nics = nics_;
  const ns3::TypeId type = Nic::GetTypeId();
  const std::vector<std::string> common = AttributesOfSettings(stated_.nic);
  std::map<std::vector<std::string>, NicVariant> variants;
  for (uint32_t i = 0; i < size(); ++i) {
    std::vector<std::string> attributes = AttributesOf(*nic(i));
    const std::string& name = graph_.device(device(i)).name;
    for (size_t a = 0; a < attributes.size(); ++a) {
      if (attributes[a] == before_[i][a]) continue;
      const std::string attribute = type.GetAttribute(a).name;
      NS_ABORT_MSG_IF(stated_.nic.is_tcp,
                      name << ": " << attribute
                           << " is set, but with TCP sockets NICs differ in their rate alone");
      NS_ABORT_MSG_IF(std::ranges::count(kOfAllNics, attribute) != 0,
                      name << ": " << attribute
                           << " is of all NICs and checked with the scenario (expected it in `nic` "
                              "of the scenario)");
    }
    if (attributes != before_[i]) CheckAttributes(device(i));
    if (attributes == common) continue;
    NicVariant& variant = variants[std::move(attributes)];
    variant.settings = nic(i)->settings();
    variant.nics.push_back(device(i));
  }
  NS_ABORT_MSG_IF(variants.size() > kNicVariantsMax,
                  "NICs have " << variants.size() << " different sets of attributes (expected at "
                               << "most " << kNicVariantsMax << ")");
  settings.nic_variants.clear();
  for (auto& [attributes, variant] : variants) settings.nic_variants.push_back(std::move(variant));
  return settings;
}

}  // namespace railyard
