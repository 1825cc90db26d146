// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/ns3/fabric_link.h"

#include <utility>

#include <ns3/string.h>

#include "simulator/ns3/on_demand_accessor.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricLink);

ns3::TypeId FabricLink::GetTypeId() {
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::FabricLink")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<FabricLink>()
          .AddAttribute("Name", "Name of the link: \"server1/nic3>leaf3\".", ns3::TypeId::ATTR_GET,
                        ns3::StringValue(""), ns3::MakeStringAccessor(&FabricLink::GetName),
                        ns3::MakeStringChecker())
          .AddAttribute("DataRate", "Nominal rate of the link.", ns3::TypeId::ATTR_GET,
                        ns3::DataRateValue(ns3::DataRate()),
                        ns3::MakeDataRateAccessor(&FabricLink::GetDataRate),
                        ns3::MakeDataRateChecker())
          .AddTraceSource("PacketReceived", "A packet has arrived at the link's far end.",
                          MakeOnDemandAccessor(&FabricLink::received_, &FabricLink::OnConnect),
                          "railyard::PacketEvent")
          .AddTraceSource("PacketLost", "The link has lost a packet.",
                          MakeOnDemandAccessor(&FabricLink::lost_, &FabricLink::OnConnect),
                          "railyard::PacketEvent");
  return type_id;
}

void FabricLink::Describe(const std::string& name, uint64_t rate_bps,
                          std::function<void()> add_tap) {
  name_ = name;
  rate_bps_ = rate_bps;
  add_tap_ = std::move(add_tap);
}

void FabricLink::OnConnect() {
  if (std::exchange(is_traced_, true)) return;
  if (add_tap_) add_tap_();
}

}  // namespace railyard
