// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/routing_delays.h"

#include <ns3/double.h>
#include <ns3/integer.h>

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(Routing);

ns3::TypeId Routing::GetTypeId() {
  constexpr int64_t kDelayPsMax = 1000 * kPsPerSecond;
  const RoutingDelays defaults;
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::Routing")
          .SetParent<ns3::Object>()
          .SetGroupName("Railyard")
          .AddConstructor<Routing>()
          .AddAttribute(
              "DetectionDelayPs",
              "Time from loss of signal to the devices at the link's ends knowing of it, in "
              "ps. A fault that is over sooner changes no route. Default: a PHY's "
              "debounce of 10 ms (IEEE 802.3 link_fail_inhibit class timers).",
              ns3::IntegerValue(defaults.detection_ps),
              ns3::MakeIntegerAccessor(&Routing::SetDetectionPs, &Routing::GetDetectionPs),
              ns3::MakeIntegerChecker<int64_t>(0, kDelayPsMax))
          .AddAttribute(
              "ConvergenceDelayPs",
              "Time from there to new routes in those devices, in ps. Default: the order of BGP "
              "with fast fall-over in a two-tier fabric.",
              ns3::IntegerValue(defaults.convergence_ps),
              ns3::MakeIntegerAccessor(&Routing::SetConvergencePs, &Routing::GetConvergencePs),
              ns3::MakeIntegerChecker<int64_t>(0, kDelayPsMax))
          .AddAttribute("HopShare",
                        "Share of ConvergenceDelayPs by which switches and NICs have new routes "
                        "later for each hop that they are away from the link's ends. "
                        "Default: assumed.",
                        ns3::DoubleValue(defaults.hop_share),
                        ns3::MakeDoubleAccessor(&Routing::SetHopShare, &Routing::GetHopShare),
                        ns3::MakeDoubleChecker<double>(0, 1));
  return type_id;
}

}  // namespace railyard
