// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/settings_loader.h"

#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

// NCCL_PARAM(IbTimeout, "IB_TIMEOUT", …) of src/transport/net_ib.cc in these releases.
TEST(SettingsLoaderTest, TheIbTimeoutDefaultsToThatOfTheVersion) {
  const auto timeout_of = [](const std::string& version) {
    return LoadBeside("nccl { version: \"" + version + "\" }")->stack.nic.ib_timeout;
  };
  EXPECT_EQ(timeout_of("2.4.8"), 14u);
  EXPECT_EQ(timeout_of("2.13.4"), 14u);
  EXPECT_EQ(timeout_of("2.14.3"), 18u);
  EXPECT_EQ(timeout_of("2.22.3"), 18u);
  EXPECT_EQ(timeout_of("2.23.4"), 20u);
  EXPECT_EQ(timeout_of("2.27.5"), 20u);
  EXPECT_EQ(LoadBeside("")->stack.nic.ib_retry_cnt, 7u);
}

TEST(SettingsLoaderTest, SwitchesCannotBalanceRoutesThatTheSenderDraws) {
  const std::string fabric =
      "fabric { torus { servers { count: 4 platform: \"single-gpu\" } dimensions: [2, 2] valiant: "
      "true } }\n";
  EXPECT_EQ(LoadedScenario(fabric + kWorkload + "network { load_balancing: SPRAYING }").findings,
            ":3:11: error: network.load_balancing: switches cannot balance VALIANT_DIMENSION_ORDER "
            "routes, on which each flow draws its own way (expected ECMP, or a fabric with other "
            "routes)\n");
  EXPECT_EQ(LoadedScenario(fabric + kWorkload + "network { load_balancing: ECMP }").findings, "");
}

// A ring of 20: routes of ten cables between routers, a class for each.
TEST(SettingsLoaderTest, RoutesThatNeedMoreLosslessClassesThanThereAreAreRefused) {
  const std::string fabric =
      "fabric { direct_connect { servers { count: 20 platform: \"single-gpu\" } degree: 2 demands "
      "{ from: 0 to: 1 bytes: \"1MiB\" } } }\n";
  const std::string refusal =
      ":1:1: error: fabric: its routes need 10 lossless classes, and PFC has 8 (expected a fabric "
      "of shorter routes, or switch { lossless_data: false })\n";
  EXPECT_EQ(LoadedScenario(fabric + kWorkload).findings, refusal);
  EXPECT_EQ(
      LoadedScenario(fabric + kWorkload + "network { network_flow_control: CREDITS }").findings,
      refusal);
  EXPECT_EQ(LoadedScenario(fabric + kWorkload + "switch { lossless_data: false }").findings, "");
  EXPECT_EQ(LoadedScenario(fabric + kWorkload + "network { network_flow_control: NONE }").findings,
            "");
}

// Values that would change what a run does, and do not.
TEST(SettingsLoaderTest, NcclVariablesThatAreNotModelledAreRefused) {
  const auto refusal = [](const char* name, int value, const char* why) {
    return fmt::format(":3:8: error: nccl.{}: {} is not modelled: {}\n", name, value, why);
  };
  EXPECT_EQ(FindingsBeside("nccl { NTHREADS: 256 }"),
            refusal("NTHREADS", 256,
                    "rates and latencies are those of full CTAs (expected 512, or none)"));
  EXPECT_EQ(FindingsBeside("nccl { NTHREADS: 512 }"), "");
}

TEST(SettingsLoaderTest, CollNetNeedsSwitchesThatReduceAndRoutesThatMeet) {
  EXPECT_EQ(
      FindingsBeside("nccl { COLLNET_ENABLE: 1 }"),
      ":3:8: error: nccl.COLLNET_ENABLE: 1 needs switches that reduce, which are InfiniBand's "
      "(expected network.network_flow_control: CREDITS beside it, or 0)\n");
  EXPECT_EQ(FindingsBeside("nccl { COLLNET_ENABLE: 1 } network { network_flow_control: CREDITS }"),
            "");
  EXPECT_EQ(FindingsBeside("nccl { COLLNET_ENABLE: 0 }"), "");
  EXPECT_EQ(FindingsBeside("nccl { COLLNET_ENABLE: 2 }"),
            ":3:8: error: nccl.COLLNET_ENABLE: 2 is out of range (expected 0 to 1)\n");
}

// The stricter of the limits on channels and CTAs holds.
TEST(SettingsLoaderTest, CtasAreChannels) {
  const auto scenario = LoadBeside(
      "nccl { MIN_NCHANNELS: 2 MIN_CTAS: 3 MAX_NCHANNELS: 9 MAX_CTAS: 12 NCHANNELS_PER_NET_PEER: 2 "
      "P2P_NET_CHUNKSIZE: \"64KiB\" P2P_NVL_CHUNKSIZE: \"256KiB\" NVLS_ENABLE: false "
      "NVLS_CHUNKSIZE: \"64KiB\" PAT_ENABLE: 1 }");
  EXPECT_EQ(scenario->nccl.min_nchannels, 3u);
  EXPECT_EQ(scenario->nccl.max_nchannels, 9u);
  EXPECT_EQ(scenario->nccl.nchannels_per_net_peer, 2u);
  EXPECT_EQ(scenario->nccl.p2p_net_chunksize_bytes, 64u << 10);
  EXPECT_EQ(scenario->nccl.p2p_nvl_chunksize_bytes, 256u << 10);
  EXPECT_FALSE(scenario->nccl.nvls_enable);
  EXPECT_EQ(scenario->nccl.nvls_chunksize_bytes, 64u << 10);
  EXPECT_EQ(scenario->nccl.pat_enable, 1u);
}

TEST(SettingsLoaderTest, HangingRanksAreEndedByALauncherOrTimeOut) {
  using Detection = RestartSettings::Detection;
  EXPECT_EQ(LoadBeside("")->watchdog.detection, Detection::kLauncher);
  EXPECT_EQ(LoadBeside("watchdog { detection: LAUNCHER }")->watchdog.detection,
            Detection::kLauncher);
  EXPECT_EQ(LoadBeside("watchdog { detection: WATCHDOG }")->watchdog.detection,
            Detection::kWatchdog);
  EXPECT_EQ(FindingsBeside("watchdog { detection: WATCHDOG } restart {}"),
            ":3:12: error: watchdog.detection: has no effect on a job that begins again (expected "
            "restart.detection)\n");
}

TEST(SettingsLoaderTest, NcclVariablesAreTakenByTheirNames) {
  const auto scenario = LoadBeside(
      "nccl { version: \"2.27.5\" IB_TIMEOUT: 31 IB_RETRY_CNT: 0 CROSS_NIC: 0 BUFFSIZE: \"8MiB\" "
      "MIN_NCHANNELS: 2 MAX_NCHANNELS: 4 PXN_DISABLE: true }");
  EXPECT_EQ(scenario->nccl.version, 22705u);
  EXPECT_EQ(scenario->stack.nic.ib_timeout, 31u);
  EXPECT_EQ(scenario->stack.nic.ib_retry_cnt, 0u);
  EXPECT_EQ(scenario->nccl.cross_nic, 0u);
  EXPECT_EQ(scenario->nccl.buffsize_bytes, 8u << 20);
  EXPECT_EQ(scenario->nccl.min_nchannels, 2u);
  EXPECT_EQ(scenario->nccl.max_nchannels, 4u);
  EXPECT_TRUE(scenario->nccl.pxn_disable);
}

TEST(SettingsLoaderTest, NcclVariablesOutOfRangeAreRefused) {
  EXPECT_EQ(FindingsBeside("nccl { version: \"latest\" }"),
            ":3:8: error: nccl.version: \"latest\" is not a version of NCCL (expected e.g. "
            "\"2.27.5\")\n");
  EXPECT_EQ(FindingsBeside("nccl { IB_TIMEOUT: 32 }"),
            ":3:8: error: nccl.IB_TIMEOUT: 32 is out of range (expected 1 to 31)\n");
  EXPECT_EQ(FindingsBeside("nccl { IB_TIMEOUT: 0 }"),
            ":3:8: error: nccl.IB_TIMEOUT: 0 is no time-out at all, a lost packet would be waited "
            "for without end (expected 1 to 31: 4.096 us x 2^N)\n");
  EXPECT_EQ(FindingsBeside("nccl { IB_RETRY_CNT: 8 }"),
            ":3:8: error: nccl.IB_RETRY_CNT: 8 is out of range (expected 0 to 7)\n");
  EXPECT_EQ(FindingsBeside("nccl { CROSS_NIC: 3 }"),
            ":3:8: error: nccl.CROSS_NIC: 3 is out of range (expected 0 to 2)\n");
  EXPECT_EQ(FindingsBeside("nccl { MAX_NCHANNELS: 65 }"),
            ":3:8: error: nccl.MAX_NCHANNELS: 65 is out of range (expected 1 to 64)\n");
  EXPECT_EQ(FindingsBeside("nccl { MIN_NCHANNELS: 8 MAX_NCHANNELS: 4 }"),
            ":3:8: error: nccl.MIN_NCHANNELS: 8 is more than MAX_NCHANNELS, 4\n");
  EXPECT_EQ(FindingsBeside("nccl { BUFFSIZE: \"1KiB\" }"),
            ":3:8: error: nccl.BUFFSIZE: 1 KiB is out of range (expected 64 KiB to 1 GiB)\n");
  EXPECT_EQ(FindingsBeside("nccl { MIN_NCHANNELS: 2 MIN_CTAS: 8 MAX_NCHANNELS: 9 MAX_CTAS: 4 }"),
            ":3:25: error: nccl.MIN_CTAS: 8 is more than MAX_CTAS, 4\n");
  EXPECT_EQ(
      FindingsBeside("nccl { P2P_NET_CHUNKSIZE: \"1MiB\" }"),
      ":3:8: error: nccl.P2P_NET_CHUNKSIZE: 1 MiB is out of range (expected 4 KiB to 512 KiB)\n");
  EXPECT_EQ(
      FindingsBeside("nccl { version: \"2.13.4\" P2P_NET_CHUNKSIZE: \"64KiB\" }"),
      ":3:26: error: nccl.P2P_NET_CHUNKSIZE: NCCL has it from 2.14 on, the job's is 2.13.4\n");
  EXPECT_EQ(FindingsBeside("nccl { PAT_ENABLE: 3 }"),
            ":3:8: error: nccl.PAT_ENABLE: 3 is out of range (expected 0 to 2)\n");
  EXPECT_EQ(FindingsBeside("nccl { version: \"2.4.8\" PXN_DISABLE: true }"),
            ":3:25: error: nccl.PXN_DISABLE: NCCL has it from 2.12 on, the job's is 2.4.8\n");
}

TEST(SettingsLoaderTest, GpuNicAndRoutingTakeTheirQuantities) {
  const auto scenario = LoadBeside(
      "gpu { launch_latency: \"1us\" nvlink_step_latency: \"2us\" network_step_latency: \"3us\" "
      "channel_rate: \"20GBps\" proxy_post_latency: \"0s\" }\n"
      "nic { mtu_bytes: 1024 window: \"1MiB\" ack_every_packets: 4 }\n"
      "routing { detection_delay: \"10us\" convergence_delay: \"20ms\" }");
  EXPECT_EQ(scenario->gpu.launch_latency_ps, 1 * kPsPerUs);
  EXPECT_EQ(scenario->gpu.nvlink_step_latency_ps, 2 * kPsPerUs);
  EXPECT_EQ(scenario->gpu.network_step_latency_ps, 3 * kPsPerUs);
  EXPECT_EQ(scenario->gpu.channel_rate_bps, 160'000'000'000u);
  EXPECT_EQ(scenario->gpu.proxy_post_latency_ps, 0);
  EXPECT_EQ(scenario->stack.nic.mtu_bytes, 1024u);
  EXPECT_EQ(scenario->stack.nic.window_bytes, 1u << 20);
  EXPECT_EQ(scenario->stack.nic.ack_every_packets, 4u);
  EXPECT_EQ(scenario->routing.detection_ps, 10 * kPsPerUs);
  EXPECT_EQ(scenario->routing.convergence_ps, 20 * kPsPerMs);
  EXPECT_EQ(LoadBeside("gpu { channel_rate: \"0Gbps\" }")->gpu.channel_rate_bps, 0u);  // no limit
}

TEST(SettingsLoaderTest, NicAndDelaysOutOfRangeAreRefused) {
  EXPECT_EQ(
      FindingsBeside("nic { mtu_bytes: 9000 }"),
      ":3:7: error: nic.mtu_bytes: 9000 is not an MTU of InfiniBand (expected 256, 512, 1024, 2048 "
      "or 4096)\n");
  EXPECT_EQ(
      FindingsBeside("nic { mtu_bytes: 1500 }"),
      ":3:7: error: nic.mtu_bytes: 1500 is not an MTU of InfiniBand (expected 256, 512, 1024, "
      "2048 or 4096)\n");
  EXPECT_EQ(FindingsBeside("nic { ack_every_packets: 0 }"),
            ":3:7: error: nic.ack_every_packets: 0 is out of range (expected 1 to 65536)\n");
  EXPECT_EQ(FindingsBeside("nic { mtu_bytes: 4096 window: \"1KiB\" }"),
            ":3:23: error: nic.window: 1 KiB is out of range (expected 4 KiB to 16 GiB)\n");
  EXPECT_EQ(
      FindingsBeside("nic { mtu_bytes: 4096 window: \"64KiB\" ack_every_packets: 17 }"),
      ":3:39: error: nic.ack_every_packets: the window of 64 KiB is full before 17 packets of "
      "4 KiB earn an ACK\n");
  EXPECT_EQ(FindingsBeside("routing { devices { device: \"leaf9\" detection_delay: \"1ms\" } }"),
            ":3:21: error: routing.devices[0].device: \"leaf9\" is no switch and no NIC (expected "
            "e.g. \"leaf3\")\n");
  EXPECT_EQ(FindingsBeside("routing { devices { } }"),
            ":3:11: error: routing.devices[0].device: missing (expected e.g. \"leaf3\")\n"
            ":3:11: error: routing.devices[0].detection_delay: missing (expected detection_delay, "
            "convergence_delay or both)\n");
  EXPECT_EQ(
      FindingsBeside("routing { devices { device: \"leaf3\" convergence_delay: \"1001s\" } }"),
      ":3:37: error: routing.devices[0].convergence_delay: \"1001s\" is out of range (expected "
      "at most 1000 s)\n");
  EXPECT_EQ(FindingsBeside("routing { devices { device: \"leaf*\" detection_delay: \"1ms\" } "
                           "devices { device: \"leaf3\" detection_delay: \"2ms\" } }"),
            ":3:72: error: routing.devices[1].device: \"leaf3\" has delays already "
            "(expected each device once)\n");
  EXPECT_EQ(FindingsBeside("routing { detection_delay: \"1001s\" }"),
            ":3:11: error: routing.detection_delay: \"1001s\" is out of range (expected 0 s to "
            "1000 s)\n");
}

}  // namespace
}  // namespace railyard
