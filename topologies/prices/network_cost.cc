// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/prices/network_cost.h"

#include <array>

namespace railyard {
namespace {

class Counter {
 public:
  explicit Counter(const Prices& prices) : prices_(prices) {}

  void Count(NetworkPart part, uint64_t rate_bps) {
    const auto i = static_cast<size_t>(part);
    ++counts_[i];
    rates_[i] += static_cast<double>(rate_bps) / static_cast<double>(prices_.parts[i].rate_bps);
  }

  NetworkCost Sum() const {
    NetworkCost sum;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      const PartPrice& price = prices_.parts[i];
      const PartCost part = {.part = static_cast<NetworkPart>(i),
                             .count = counts_[i],
                             .cost = price.cost.value_or(0) * rates_[i],
                             .watts = price.watts.value_or(0) * rates_[i],
                             .has_cost = price.cost.has_value(),
                             .has_watts = price.watts.has_value()};
      sum.cost += part.cost;
      sum.watts += part.watts;
      sum.parts.push_back(part);
    }
    return sum;
  }

 private:
  const Prices& prices_;
  std::array<uint64_t, kNetworkPartCount> counts_ = {};
  std::array<double, kNetworkPartCount> rates_ = {};  // counts in units of the price's rate
};

}  // namespace

NetworkCost CostOf(const FabricGraph& fabric, const Prices& prices) {
  Counter counter(prices);
  for (uint32_t i = 0; i < fabric.cables().size(); ++i) {
    const LinkId link = fabric.cables()[i].forward;
    const LinkProperties& properties = fabric.link(link);
    if (properties.tier == Tier::kNvlink || properties.tier == Tier::kHost) continue;
    const bool is_circuit = fabric.circuits && fabric.circuits->slots_of_cable.contains(i);
    // There are equally many circuits at all times: those of the first slot.
    if (is_circuit && !fabric.circuits->IsThere(i, 0)) continue;
    counter.Count(NetworkPart::kCable, properties.rate_bps);
    for (const DeviceId end : {fabric.link_source(link), fabric.link_target(link)}) {
      const bool is_nic = fabric.device(end).kind == DeviceKind::kNic;
      counter.Count(is_nic ? NetworkPart::kNicPort : NetworkPart::kSwitchPort, properties.rate_bps);
      counter.Count(is_nic ? NetworkPart::kNicTransceiver : NetworkPart::kSwitchTransceiver,
                    properties.rate_bps);
      if (is_circuit) counter.Count(NetworkPart::kCircuitPort, properties.rate_bps);
    }
  }
  return counter.Sum();
}

}  // namespace railyard
