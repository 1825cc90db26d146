// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/link_news.h"

#include <algorithm>

namespace railyard {

LinkNews PlanLinkNews(const FabricGraph& graph, const EcmpRouting& routing,
                      const RoutingDelays& delays, LinkId link) {
  LinkNews news{.link = link, .wave_of_device = {}, .times_ps = {}};
  const DeviceId ends[] = {graph.link_source(link), graph.link_target(link)};
  std::vector<int64_t> new_routes_ps(graph.device_count(), kNeverPs);  // by device
  for (const DeviceId end : ends) {
    const std::vector<uint32_t> hops = routing.HopsFrom(link, {end});
    for (DeviceId device{0}; device < hops.size(); ++device) {
      if (hops[device] == EcmpRouting::kUnreachable) continue;
      const int64_t heard_ps = delays.Of(end).detection_ps + hops[device] * delays.HopPs();
      new_routes_ps[device] =
          std::min(new_routes_ps[device], heard_ps + delays.Of(device).convergence_ps);
    }
  }
  news.times_ps = new_routes_ps;
  std::sort(news.times_ps.begin(), news.times_ps.end());
  news.times_ps.erase(std::unique(news.times_ps.begin(), news.times_ps.end()), news.times_ps.end());
  for (const int64_t time_ps : new_routes_ps) {
    const auto wave = std::lower_bound(news.times_ps.begin(), news.times_ps.end(), time_ps);
    news.wave_of_device.push_back(time_ps == kNeverPs
                                      ? EcmpRouting::kUnreachable
                                      : static_cast<uint32_t>(wave - news.times_ps.begin()));
  }
  std::erase(news.times_ps, kNeverPs);
  return news;
}

int64_t FirstDetectionPs(const FabricGraph& graph, const RoutingDelays& delays, LinkId link) {
  return std::min(delays.Of(graph.link_source(link)).detection_ps,
                  delays.Of(graph.link_target(link)).detection_ps);
}

}  // namespace railyard
