// SPDX-License-Identifier: GPL-2.0-only
// A link between leaf and spine that carries traffic goes down: packets are sent into it until the
// switches know and have new routes, then the rest goes over another spine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;
constexpr int64_t kFaultPs = 100 * kPsPerUs;
constexpr int64_t kRoutingPs = 500 * kPsPerUs;           // detection and convergence
constexpr int64_t kHopPs = 30 * kPsPerUs;                // a tenth of the convergence
constexpr int64_t kTimeoutPs = int64_t{4'096'000} << 6;  // 262 us
// Windows on the wire and a round trip, as in fault_test.cc, of the sixteen queue pairs of a NIC.
constexpr int64_t kTimerStartWithinPs = 200 * kPsPerUs;

class RerouteTest : public ProgramTest {
 protected:
  // Without PXN an AlltoAll's packets cross the spines from every NIC to NICs of all other rails.
  static std::string Job(const std::string& devices = "") {
    return RailOptimized(2) + Program("ALL_TO_ALL", "64MiB") +
           "nccl { PXN_DISABLE: true IB_TIMEOUT: 6 }\n"
           "routing { detection_delay: \"200us\" convergence_delay: \"300us\" " +
           devices + " }\n";
  }
  // The cables between leaves and spines over which payload went, both ways.
  static std::string BusyCable(const EndedRun& run) {
    for (size_t row = 0; row < run.links.size(); ++row) {
      const std::string& link = run.links.Text(row, "link");
      if (!link.starts_with("leaf") || run.links.Text(row, "tier") != "LEAF_SPINE") continue;
      if (run.links.Integer(row, "payload_bytes") == 0) continue;
      return link.substr(0, link.find('>')) + "--" + link.substr(link.find('>') + 1);
    }
    return "";
  }
};

TEST_F(RerouteTest, WhatIsLeftGoesOverAnotherSpine) {
  const EndedRun before = RunText(Job());
  ASSERT_EQ(before.exit.status, 0) << before.exit.errors;
  const std::string cable = BusyCable(before);
  ASSERT_NE(cable, "");
  const std::string leaf = cable.substr(0, cable.find("--"));
  const std::string spine = cable.substr(cable.find("--") + 2);

  const EndedRun run = RunText(Job() + LinkDown(cable, "100us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  // The spine knows of its dead link before the other leaves do, and has no other way down.
  EXPECT_GT(run.Drops()["NO_ROUTE"], 0);
  const EndedRun at_once =
      RunText(Job() + LinkDown(cable, "100us"), {"--set", "routing.hop_share=0"});
  EXPECT_GT(at_once.Drops()["LINK_DOWN"], 0);
  EXPECT_EQ(at_once.Drops().count("NO_ROUTE"), 0u);
  EXPECT_GT(run.Real("collectives.stretch.max"), 1);

  // The first try after the new routes succeeds: not before 500 us, and not two timers later.
  const int64_t recover_ps = run.Integer("faults.0.time_to_recover_ps");
  EXPECT_GE(recover_ps, kRoutingPs);
  EXPECT_LE(recover_ps, kRoutingPs + 2 * kHopPs + kTimeoutPs + 2 * kTimerStartWithinPs);

  // The dead link carried less than before, the leaf's other uplinks more; no byte was lost.
  const auto payload = [](const EndedRun& ended, const std::string& link) {
    return ended.links.Sum("payload_bytes", "link", link) +
           ended.links.Sum("retransmitted_bytes", "link", link);
  };
  EXPECT_LT(payload(run, leaf + ">" + spine), payload(before, leaf + ">" + spine));
  EXPECT_EQ(run.Integer("payload.total_bytes"), before.Integer("payload.total_bytes"));
}

// Back before anyone noticed: no route changes, lost packets come again over the same spine.
TEST_F(RerouteTest, AFlapNobodyDetectsChangesNoRoute) {
  const EndedRun before = RunText(Job());
  const std::string cable = BusyCable(before);
  const EndedRun run = RunText(Job() + LinkDown(cable, "100us", "150us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  const int64_t recover_ps = run.Integer("faults.0.time_to_recover_ps");
  EXPECT_LE(recover_ps, kTimeoutPs + 2 * kTimerStartWithinPs);
  // By retransmissions alone: every link between leaf and spine carried what it would have.
  for (size_t row = 0; row < run.links.size(); ++row) {
    if (run.links.Text(row, "tier") != "LEAF_SPINE") continue;
    const bool had_payload = before.links.Integer(row, "payload_bytes") > 0;
    EXPECT_EQ(run.links.Integer(row, "payload_bytes") > 0, had_payload)
        << run.links.Text(row, "link");
  }
}

// The leaf with the dead uplink takes longer to have new routes: it sends into the cable for
// longer, and so does what is lost there wait. Its neighbours' delays change nothing for it.
TEST_F(RerouteTest, ASlowSwitchTakesItsOwnTime) {
  const std::string cable = BusyCable(RunText(Job()));
  const std::string leaf = cable.substr(0, cable.find("--"));
  const auto with = [&](const std::string& device) {
    return RunText(Job("devices { " + device + " }") + LinkDown(cable, "100us", "", "FORWARD"));
  };
  const EndedRun slow = with(fmt::format("device: \"{}\" convergence_delay: \"1200us\"", leaf));
  ASSERT_EQ(slow.exit.status, 0) << slow.exit.errors;
  const int64_t slow_ps = kRoutingPs - 300 * kPsPerUs + 1'200 * kPsPerUs;
  EXPECT_GE(slow.Integer("faults.0.time_to_recover_ps"), slow_ps);
  EXPECT_LE(slow.Integer("faults.0.time_to_recover_ps"),
            slow_ps + 2 * kHopPs + kTimeoutPs + 2 * kTimerStartWithinPs);
  // If the leaf does not detect it, the spine at the cable's other end does.
  const EndedRun blind = with(fmt::format("device: \"{}\" detection_delay: \"900s\"", leaf));
  ASSERT_EQ(blind.exit.status, 0) << blind.exit.errors;
  EXPECT_EQ(blind.Integer("faults.0.time_to_detect_ps"), 200 * kPsPerUs);
  EXPECT_GE(blind.Integer("faults.0.time_to_recover_ps"), kRoutingPs + kHopPs);
  EXPECT_LE(blind.Integer("faults.0.time_to_recover_ps"),
            kRoutingPs + 4 * kHopPs + kTimeoutPs + 2 * kTimerStartWithinPs);
  // A switch that is quick to see is the first to know.
  const EndedRun quick = with(fmt::format("device: \"{}\" detection_delay: \"50us\"", leaf));
  EXPECT_EQ(quick.Integer("faults.0.time_to_detect_ps"), 50 * kPsPerUs);
  EXPECT_NE(quick.Text("fingerprint"), blind.Text("fingerprint"));
}

// All uplinks of a leaf: there is no other way, and the job is given up.
TEST_F(RerouteTest, WithoutAnyOtherWayTheJobIsAborted) {
  std::string job = RailOptimized(3) + Program("ALL_REDUCE", "64MiB") + "nccl { IB_TIMEOUT: 6 }\n";
  const EndedRun before = RunText(job);
  ASSERT_EQ(before.exit.status, 0) << before.exit.errors;
  std::string faults;
  for (size_t row = 0; row < before.links.size(); ++row) {
    const std::string& link = before.links.Text(row, "link");
    if (!link.starts_with("leaf0>spine")) continue;
    faults += LinkDown("leaf0--" + link.substr(link.find('>') + 1), "100us");
  }
  const EndedRun run = RunText(job + faults);
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.0.first_error_ps")),
              static_cast<double>(kFaultPs + 8 * kTimeoutPs), kTimerStartWithinPs);
}

// A flap of a server without ranks neither loses nor delays anything, whatever it does to routes.
TEST_F(RerouteTest, AFaultOnWhatCarriesNothingCausesNoLosses) {
  const std::string job =
      "fabric { rail_optimized { servers: 4 gpus_per_server: 6 nic_rate: \"200Gbps\" } }\n"
      "workload { program { ranks: 18 collectives { kind: ALL_REDUCE bytes: \"48MiB\" repeat: 4 } "
      "} "
      "}\nnccl { IB_TIMEOUT: 8 }\n"
      "routing { detection_delay: \"50us\" convergence_delay: \"100us\" hop_share: 0 }\n"
      "faults { name: \"real\" kind: LINK_DOWN link: \"server1/nic2\" at: \"1ms\" until: \"4ms\" "
      "}\n";
  const std::string idle =
      "faults { name: \"idle\" kind: LINK_DOWN link: \"server3/nic5\" at: \"1.3ms\" until: "
      "\"1.4ms\" }\n";
  const EndedRun alone = RunText(job);
  const EndedRun both = RunText(job + idle);
  ASSERT_EQ(both.exit.status, 0) << both.exit.errors;
  EXPECT_EQ(both.Integer("simulated_time_ps"), alone.Integer("simulated_time_ps"));
  EXPECT_GT(alone.Integer("faults.0.dropped_packets"), 0);
  EXPECT_EQ(both.Integer("faults.0.dropped_packets"), alone.Integer("faults.0.dropped_packets"));
  EXPECT_EQ(both.Integer("faults.1.dropped_packets"), 0);
}

}  // namespace
}  // namespace railyard::testing
