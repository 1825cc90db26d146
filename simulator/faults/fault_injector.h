// SPDX-License-Identifier: GPL-2.0-only
// Applies faults: each begins and ends at the instants of its timeline. When links go down or come
// back, the fabric's routes follow after detection and convergence, separately at each switch and
// NIC. A fault loses or delays packets; it never pauses time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/routing_delays.h"
#include "simulator/faults/fault_spec.h"
#include "simulator/faults/link_effects.h"
#include "simulator/faults/link_news.h"
#include "simulator/units/job_ids.h"
#include "topologies/routing/routing.h"

namespace railyard {

class FaultInjector {
 public:
  struct Hooks {
    std::function<void()> before_first_fault;  // at its instant, before anything changes
    std::function<void()> on_routes_changed;
    // Sets the speed of a GPU from now on, as a share of its full speed; 0 halts it.
    std::function<void(GpuIndex gpu, double speed)> set_gpu_speed{};
    // Starts or stops the traffic of a kBackgroundLoad.
    std::function<void(FaultIndex fault, bool runs)> set_load{};
  };
  // All references must outlive this. Schedules the faults without an anchor.
  FaultInjector(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                const RoutingDelays& delays, FabricNetwork& network, EcmpRouting& routing,
                Hooks hooks);

  // Prevents all faults from now on, as the paired fault-free run needs.
  void Disarm() { disarmed_ = true; }
  bool has_begun() const { return has_begun_; }

  // Must be called when a collective has received this share of its payload; begins the faults
  // anchored there.
  void OnCollectiveProgress(CollectiveIndex collective, double progress);

  // Records the history of a fault so far.
  struct History {
    int64_t first_begin_ps = kNeverPs;
    int64_t last_end_ps = kNeverPs;  // while it is not active
    uint64_t begins = 0;
    int64_t first_detection_ps = kNeverPs;  // of its links that are down
  };
  const History& history(FaultIndex fault) const { return states_[fault].history; }

  // Returns the servers that an inspection finds broken now: those with a cable that is known to be
  // down, or with a halted GPU.
  std::set<ServerIndex> BrokenServers() const;

  // Returns the fault that causes a loss on `link` now, if one does. A bit error is due to the
  // fault whose loss model drew it, and a loss on a link that is down to the last fault that took
  // it down. A missing route is due to the last fault that took links from routes and has not given
  // them back everywhere, if there is one to the servers of the two GPUs between which the packet
  // was. No fault causes the other losses: a buffer that overflows is congestion, although a fault
  // may be why there is more traffic.
  std::optional<FaultIndex> FaultOfLoss(DropReason reason, LinkId link, GpuIndex from,
                                        GpuIndex to) const;

 private:
  // Holds those links of a fault whose ends detect a change at the same time.
  struct LinkGroup {
    int64_t detection_ps = 0;  // from the change
    std::vector<LinkId> links;
    bool is_known = false;              // they are known to be down
    bool is_missing_in_routes = false;  // in some
  };
  struct State {
    History history;
    int64_t anchor_ps = kNeverPs;  // from which its times count
    uint64_t number = 0;           // of `interval`
    std::optional<FaultInterval> interval;
    bool holds = false;
    std::vector<LinkGroup> groups{};  // all of its links, if it takes links down
    uint32_t groups_missing = 0;      // in some routes
    uint64_t routed_number = 0;       // in routed_faults_, while some are
  };
  // Holds a fault whose links some routes lack.
  struct RoutedFault {
    FaultIndex fault{};
    uint32_t groups = 0;                 // of links that some routes lack
    std::vector<ServerIndex> servers{};  // at whose devices its links end, in order
  };
  // Describes a change of links' state that is spreading to the switches and NICs.
  struct News {
    uint32_t order = 0;  // of announcement, among the news of one instant
    FaultIndex fault{};
    uint32_t group = 0;  // of the fault's links
    bool up = false;
    bool is_detected = false;
    uint64_t number = 0;            // of the interval that began or ended
    int64_t changed_ps = 0;         // when the links changed
    std::vector<LinkNews> links{};  // the links whose state it changes
  };

  static void HandleFault(void* self, uint32_t transition);
  static void HandleRouting(void* self, uint32_t news);
  static bool TakesLinksDown(const FaultSpec& fault);
  void CountFrom(FaultIndex fault, int64_t anchor_ps);
  void ScheduleNext(FaultIndex fault);
  void ScheduleTransition(FaultIndex fault, bool begins, int64_t time_ps);
  void Begin(FaultIndex fault);
  void End(FaultIndex fault);
  void Apply(FaultIndex fault);
  void BeginAnchored(FaultIndex fault, bool at_end);
  void SetGpuSpeeds(FaultIndex fault);
  void ScheduleNews(uint32_t news, int64_t time_ps);
  std::vector<LinkGroup> GroupsOf(const FaultSpec& fault) const;
  void Announce(FaultIndex fault, bool up);
  bool Detect(News& news);
  int64_t NextWavePs(const News& news) const;  // kNeverPs if all devices know
  void Spread(uint32_t news);
  void NoteLinksGone(FaultIndex fault, LinkGroup& group);
  void NoteLinksBack(FaultIndex fault, LinkGroup& group);
  std::optional<FaultIndex> FaultOfMissingRoute(ServerIndex from_server,
                                                ServerIndex to_server) const;

  const FabricGraph& graph_;
  const std::vector<FaultSpec>& faults_;
  RoutingDelays delays_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  Hooks hooks_;
  LinkEffects effects_;
  std::vector<State> states_;
  std::vector<News> news_;
  // Elements of news_ that have reached all devices, or will reach none.
  std::vector<uint32_t> free_news_;
  uint32_t announced_ = 0;                           // news so far, modulo 2^32
  std::unordered_map<LinkId, uint32_t> known_down_;  // by how many faults
  uint64_t conditions_ = 0;                          // a hash of the set of active faults
  std::map<uint64_t, RoutedFault> routed_faults_;    // in the order in which routes lost links
  uint64_t routed_number_ = 0;                       // the last one given
  std::optional<FaultIndex> last_routed_fault_;
  bool disarmed_ = false;
  bool has_begun_ = false;
};

}  // namespace railyard
