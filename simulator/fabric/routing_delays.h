// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <map>

#include <ns3/object.h>

#include "simulator/units/units.h"
#include "topologies/graph/graph_ids.h"

namespace railyard {

// Holds the delays of the fabric's reaction to a change of a link's state. Until the switches on
// a packet's path have new routes, packets are still sent into a failed link and lost there.
struct RoutingDelays {
  // The time from the loss of signal until the port's driver reports it. A PHY debounces for about
  // 10 ms (IEEE 802.3 link_fail_inhibit class timers; the default of common switch systems).
  int64_t detection_ps = 10 * kPsPerMs;
  // The time from the report until the switches and NICs at the link's ends have new routes. BGP
  // with fast fall-over in a two-tier fabric takes about 100 ms.
  int64_t convergence_ps = 100 * kPsPerMs;
  // The additional time for each further hop from the link, as a share of convergence_ps. The value
  // is assumed: an update is forwarded long before its routes are in hardware.
  double hop_share = 0.1;

  // Holds the delays of one switch or NIC, in place of those above.
  struct OfDevice {
    int64_t detection_ps = 0;
    int64_t convergence_ps = 0;
  };
  std::map<DeviceId, OfDevice> of_device{};
  OfDevice Of(DeviceId device) const {
    const auto it = of_device.find(device);
    return it == of_device.end() ? OfDevice{detection_ps, convergence_ps} : it->second;
  }

  int64_t HopPs() const {
    return static_cast<int64_t>(hop_share * static_cast<double>(convergence_ps));
  }
};

// Presents the delays as ns-3 attributes, which the fault controller reads once.
class Routing : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  const RoutingDelays& delays() const { return delays_; }
  void SetDelays(const RoutingDelays& delays) { delays_ = delays; }

 private:
  RoutingDelays delays_;
  // ns-3's attributes are bound to these.
  void SetDetectionPs(int64_t value) { delays_.detection_ps = value; }
  int64_t GetDetectionPs() const { return delays_.detection_ps; }
  void SetConvergencePs(int64_t value) { delays_.convergence_ps = value; }
  int64_t GetConvergencePs() const { return delays_.convergence_ps; }
  void SetHopShare(double value) { delays_.hop_share = value; }
  double GetHopShare() const { return delays_.hop_share; }
};

}  // namespace railyard
