// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/nic_kinds.h"

#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/transport/congestion/no_congestion_control.h"

namespace railyard {

std::vector<ns3::Ptr<Nic>> MakeNics(const FabricGraph& graph, const NicSettings& settings,
                                    std::span<const NicVariant> variants) {
  std::vector<ns3::Ptr<Nic>> nics(graph.device_count());
  for (DeviceId device{0}; device < graph.device_count(); ++device) {
    if (graph.device(device).kind != DeviceKind::kNic) continue;
    nics[device] = ns3::CreateObject<Nic>();
    nics[device]->SetSettings(settings);
  }
  for (const NicVariant& variant : variants) {
    for (const DeviceId nic : variant.nics) nics[nic]->SetSettings(variant.settings);
  }
  return nics;
}

NicKinds::NicKinds(const FabricGraph& graph, const NicSettings& settings,
                   std::span<const NicVariant> variants, std::span<const ns3::Ptr<Nic>> nics)
    : kind_of_device_(graph.device_count()), nics_(nics.begin(), nics.end()) {
  SIM_CHECK(variants.size() <= kNicVariantsMax, "more kinds of NICs than can be numbered");
  Add(settings);
  for (const NicVariant& variant : variants) {
    for (const DeviceId nic : variant.nics) {
      kind_of_device_[nic] = static_cast<uint8_t>(kinds_.size());
    }
    Add(variant.settings);
  }
  if (nics_.empty()) nics_ = MakeNics(graph, settings, variants);
}

void NicKinds::Add(const NicSettings& settings) {
  NicKind kind{.settings = settings, .window_packets = settings.WindowPackets()};
  if (settings.congestion_control.IsTypeIdSet()) {
    kind.control = settings.congestion_control.Create<CongestionControl>();
  } else {
    kind.control = ns3::CreateObject<NoCongestionControl>();
  }
  kind.needs = kind.control->needs();
  kind.is_never_replayed = !kind.control->WhyNeverReplayed().empty();
  needs_telemetry_ |= kind.needs.telemetry;
  kinds_.push_back(std::move(kind));
}

void NicKinds::Open(ControlledQueuePair queue_pair) const {
  for (const NicKind& kind : kinds_) {
    queue_pair.window_bytes = kind.settings.window_bytes;
    kind.control->Open(queue_pair);
  }
}

std::string NicKinds::ControlNames() const {
  std::string names;
  for (const NicKind& kind : kinds_) {
    const std::string name = kind.control->GetInstanceTypeId().GetName();
    if (names.find(name) != std::string::npos) continue;
    names += (names.empty() ? "" : " and ") + name;
  }
  return names;
}

std::string NicKinds::WhyNeverReplayed() const {
  for (const NicKind& kind : kinds_) {
    std::string why = kind.control->WhyNeverReplayed();
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace railyard
