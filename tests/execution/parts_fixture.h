// SPDX-License-Identifier: GPL-2.0-only
// The parts of the execution that others call, over a connection table and without LaneExecutor.
// The test plays the rest: it calls them as lanes and transports would, and observes lanes.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/execution/sums/network_sums.h"
#include "simulator/execution/sums/switch_sums.h"
#include "simulator/units/units.h"
#include "tests/execution/connection_fixture.h"
#include "tests/execution/lane_observer_double.h"

namespace railyard::testing {

class PartsFixture : public ConnectionFixture, public LaneObserverDouble {
 protected:
  static constexpr int64_t kPostPs = kPsPerUs;
  static constexpr int64_t kArrivalPs = kPsPerUs / 4;
  static constexpr int64_t kNvlinkStepPs = 900 * kPsPerNs;
  static constexpr int64_t kNetworkStepPs = 2 * kPsPerUs;  // half before the post, half after
  // A byte takes a CTA 1 ns.
  static constexpr uint64_t kCtaRateBps = 8'000'000'000;
  static constexpr int64_t kOverheadPs = 700 * kPsPerNs;
  // A flag's way up to an NVSwitch and down.
  static int64_t FlagPs() {
    return 2 * ServerSpec{}.nvlink_delay_ps + ServerSpec{}.nvswitch_latency_ps;
  }

  static constexpr ProxyCosts kProxyCosts{.post_ps = kPostPs, .arrival_ps = kArrivalPs};

  explicit PartsFixture(const NetworkStackFactory& make_stack = MakeFixedLatencyStack,
                        const ProxyCosts& proxy_costs = kProxyCosts)
      : ConnectionFixture(make_stack),
        clock_(16),
        lanes_(*table_, clock_),
        wakes_(engine()),
        network_sums_(*aggregation_, *table_),
        switch_sums_(load_store_->groups(), *table_, sink_, sink_),
        proxies_({.engine = engine(),
                  .threads = threads_,
                  .table = *table_,
                  .lanes = lanes_,
                  .clock = clock_,
                  .wakes = wakes_,
                  .sums = network_sums_},
                 std::vector<ProxyCosts>(16, proxy_costs)) {
    costs_ = AddCosts({});
  }

  uint8_t AddCosts(const MessageRule& rule) {
    return clock_.AddCosts({.nvlink_step_latency_ps = kNvlinkStepPs,
                            .slice_overhead_ps = kOverheadPs,
                            .network_step_latency_ps = kNetworkStepPs,
                            .channel_rate_bps = kCtaRateBps},
                           rule);
  }
  RankProgram ProgramOf(const CollectiveSchedule& schedule, uint32_t rank) const {
    return {.operation = RunningIndex{rank},
            .rank = RankIndex{rank},
            .costs = costs_,
            .line_costs = costs_,
            .schedule = &schedule};
  }
  // The lane of a program whose batches have one.
  LaneIndex OpenLane(const RankProgram& program) {
    const ChannelIndex channel = lanes_.OpenChannel(program, 0, engine().NowPs());
    EXPECT_EQ(lanes_.NextBatch(channel), 1u);
    return lanes_.OpenLane(channel, 0);
  }
  LaneIndex OpenLane(const CollectiveSchedule& schedule, uint32_t rank) {
    return OpenLane(ProgramOf(schedule, rank));
  }
  // The lanes woken since the last call.
  std::vector<LaneIndex> Woken() {
    std::vector<LaneIndex> woken;
    wakes_.TakeAll([&](LaneIndex lane) { woken.push_back(lane); });
    return woken;
  }

  CtaClock clock_;
  LaneTable lanes_;
  LaneWakes wakes_;
  NetworkSums network_sums_;
  SwitchSums switch_sums_;
  NetworkProxies proxies_;
  uint8_t costs_ = 0;
};

}  // namespace railyard::testing
