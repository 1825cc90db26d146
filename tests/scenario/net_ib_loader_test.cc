// SPDX-License-Identifier: GPL-2.0-only
// The fields of IB: defaults by version of how connections use queue pairs, and refusals.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/config.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

constexpr const char* kTwoPorts =
    "fabric { dual_tor { servers { count: 2 platform: \"single-gpu\" } aggs_per_plane: 2 } }\n";

std::string FindingsOf(const std::string& lines, const std::string& fabric = kTwoPorts) {
  return LoadedScenario(fabric + kWorkload + lines).findings;
}
NetIbSettings Load(const std::string& lines) {
  const LoadedScenario loaded(std::string(kTwoPorts) + kWorkload + lines);
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  return loaded.scenario ? loaded.scenario->stack.ib : NetIbSettings{};
}

// Programs set such defaults for all scenarios that they load.
TEST(NetIbLoaderTest, PortsAreAggregatedAsTheAttributesDefaultSays) {
  const auto aggregates = [](const std::string& lines) {
    const LoadedScenario loaded(std::string(kTwoPorts) + kWorkload + lines);
    return loaded.scenario && loaded.scenario->stack.nic.link_aggregation;
  };
  EXPECT_TRUE(aggregates("nccl { version: \"2.30.7\" }"));
  ns3::Config::SetDefault("railyard::Nic::LinkAggregation", ns3::BooleanValue(false));
  EXPECT_FALSE(aggregates("nccl { version: \"2.30.7\" }"));
  EXPECT_TRUE(aggregates("nccl { version: \"2.30.7\" } nic { link_aggregation: true }"));
  ns3::Config::SetDefault("railyard::Nic::LinkAggregation", ns3::BooleanValue(true));
}

// NCCL_PARAM of src/transport/net_ib/{connect,p2p_resiliency,p2p_resiliency_recovery}.cc, 2.30.
TEST(NetIbLoaderTest, DefaultsAreNccls) {
  const NetIbSettings settings = Load("nccl { version: \"2.30.7\" }");
  EXPECT_EQ(settings.ib_qps_per_connection, 1u);
  EXPECT_FALSE(settings.ib_split_data_on_qps);
  EXPECT_FALSE(settings.port_failover);
  EXPECT_EQ(settings.failover_probe_delay_ps, 10 * kPsPerMs);
  EXPECT_FALSE(settings.port_recovery);
  EXPECT_EQ(settings.recovery_start_delay_ps, 200 * kPsPerMs);
  EXPECT_EQ(settings.recovery_alive_msg_timeout_ps, 4 * kPsPerSecond);
  EXPECT_EQ(settings.recovery_ack_timeout_ps, 5 * kPsPerSecond);
  EXPECT_EQ(settings.recovery_attempts_max, 5u);
}

// Off since 2.20; before 2.18 all queue pairs were always used.
TEST(NetIbLoaderTest, SplittingDependsOnTheVersion) {
  const auto splits = [](const std::string& version) {
    return Load("nccl { version: \"" + version + "\" }").ib_split_data_on_qps;
  };
  EXPECT_TRUE(splits("2.17.1"));
  EXPECT_TRUE(splits("2.19.4"));
  EXPECT_FALSE(splits("2.20.5"));
  EXPECT_FALSE(Load("nccl { version: \"2.19.4\" IB_QPS_PER_CONNECTION: 2 IB_SPLIT_DATA_ON_QPS: "
                    "false }")
                   .ib_split_data_on_qps);
}

TEST(NetIbLoaderTest, VariablesThatTheVersionHasNotAreRefused) {
  EXPECT_EQ(
      FindingsOf("nic { link_aggregation: false }\n"
                 "nccl { version: \"2.28.9\" IB_RESILIENCY_PORT_FAILOVER: true }"),
      ":4:26: error: nccl.IB_RESILIENCY_PORT_FAILOVER: NCCL has it from 2.29 on, the job's is "
      "2.28.9\n");
  EXPECT_EQ(FindingsOf("nic { link_aggregation: false }\n"
                       "nccl { version: \"2.29.7\" IB_RESILIENCY_PORT_FAILOVER: true "
                       "IB_RESILIENCY_PORT_RECOVERY: true }"),
            ":4:60: error: nccl.IB_RESILIENCY_PORT_RECOVERY: NCCL has it from 2.30 on, the job's "
            "is 2.29.7\n");
  EXPECT_EQ(FindingsOf("nccl { version: \"2.17.1\" IB_QPS_PER_CONNECTION: 2 "
                       "IB_SPLIT_DATA_ON_QPS: false }"),
            ":3:51: error: nccl.IB_SPLIT_DATA_ON_QPS: NCCL has it from 2.18 on, the job's is "
            "2.17.1\n");
  EXPECT_EQ(FindingsOf("nccl { version: \"2.8.3\" IB_QPS_PER_CONNECTION: 2 "
                       "IB_SPLIT_DATA_ON_QPS: false }"),
            ":3:50: error: nccl.IB_SPLIT_DATA_ON_QPS: NCCL has it from 2.18 on, the job's is "
            "2.8.3\n");
  EXPECT_EQ(FindingsOf("nic { link_aggregation: false }\nnccl { version: \"2.19.4\" }"),
            ":3:7: error: nic.link_aggregation: NCCL merges the ports of a NIC from 2.20 on, the "
            "job's is 2.19.4 (expected link_aggregation: true)\n");
}

TEST(NetIbLoaderTest, WhatHasNoEffectIsRefused) {
  EXPECT_EQ(FindingsOf("nic { link_aggregation: false }", kFabric),
            ":3:7: error: nic.link_aggregation: has no effect on NICs of one port (expected a "
            "fabric whose NICs have several)\n");
  EXPECT_EQ(FindingsOf("nccl { version: \"2.30.7\" IB_RESILIENCY_PORT_FAILOVER: true }"),
            ":3:26: error: nccl.IB_RESILIENCY_PORT_FAILOVER: has no effect where a NIC is one "
            "device (expected nic.link_aggregation: false, whose ports NCCL merges)\n");
  EXPECT_EQ(FindingsOf("nccl { IB_SPLIT_DATA_ON_QPS: true }"),
            ":3:8: error: nccl.IB_SPLIT_DATA_ON_QPS: has no effect on one queue pair a device "
            "(expected IB_QPS_PER_CONNECTION of 2 or more)\n");
  const std::string ports = "nic { link_aggregation: false }\nnccl { version: \"2.30.7\" ";
  EXPECT_EQ(FindingsOf(ports + "IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY: 5 "
                               "IB_RESILIENCY_PORT_RECOVERY: true }"),
            ":4:26: error: nccl.IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY: has no effect without "
            "IB_RESILIENCY_PORT_FAILOVER: true\n"
            ":4:69: error: nccl.IB_RESILIENCY_PORT_RECOVERY: has no effect without "
            "IB_RESILIENCY_PORT_FAILOVER: true\n");
  EXPECT_EQ(FindingsOf(ports + "IB_RESILIENCY_PORT_FAILOVER: true "
                               "IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX: 9 }"),
            ":4:60: error: nccl.IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX: has no effect without "
            "IB_RESILIENCY_PORT_RECOVERY: true\n");
}

TEST(NetIbLoaderTest, PortsThatAreDevicesNeedRoutesBetweenThem) {
  EXPECT_EQ(FindingsOf("nccl { NET: \"AWS Libfabric\" } nic { link_aggregation: false }\n"
                       "network { load_balancing: SPRAYING }"),
            "");
  EXPECT_EQ(FindingsOf("nic { link_aggregation: false }\nnetwork { load_balancing: SPRAYING }"),
            ":4:11: error: network.load_balancing: takes packets to either port of a NIC (expected "
            "ECMP, or nic.link_aggregation: true)\n");
  EXPECT_EQ(FindingsOf("nccl { IB_QPS_PER_CONNECTION: 129 }"),
            ":3:8: error: nccl.IB_QPS_PER_CONNECTION: 129 is out of range (expected 1 to 128)\n");
  EXPECT_EQ(FindingsOf("nic { link_aggregation: false }\nnccl { IB_QPS_PER_CONNECTION: 65 }"),
            ":4:8: error: nccl.IB_QPS_PER_CONNECTION: 65 is out of range (expected 1 to 64)\n");
}

// Two servers of a GPU and a NIC with two ports, whose cables are `links`.
std::string TwoServers(const std::string& links) {
  std::string text;
  for (const char* server : {"0", "1"}) {
    text += fmt::format(
        "devices {{ name: \"s{0}/gpu\" kind: GPU server: {0} local_index: 0 }}\n"
        "devices {{ name: \"s{0}/nic\" kind: NIC server: {0} local_index: 0 }}\n"
        "links {{ from: \"s{0}/gpu\" to: \"s{0}/nic\" tier: HOST rate: \"400Gbps\" }}\n",
        server);
  }
  return text + links;
}
std::string Cable(const std::string& from, const std::string& to, const std::string& tier) {
  return "links { from: \"" + from + "\" to: \"" + to + "\" tier: " + tier +
         " rate: \"100Gbps\" }\n";
}
std::string FindingsOn(const std::string& topology) {
  const TextFile file(topology, "fabric.textproto");
  return FindingsOf("nic { link_aggregation: false }", "fabric { file: \"fabric.textproto\" }\n");
}
const std::string kLeaves =
    "devices { name: \"leaf0\" kind: SWITCH }\ndevices { name: \"leaf1\" kind: SWITCH }\n";

TEST(NetIbLoaderTest, EachPortMustReachThatOfTheSameNumber) {
  const std::string straight =
      Cable("s0/nic", "leaf0", "NIC_LEAF") + Cable("s0/nic", "leaf1", "NIC_LEAF") +
      Cable("s1/nic", "leaf0", "NIC_LEAF") + Cable("s1/nic", "leaf1", "NIC_LEAF");
  EXPECT_EQ(FindingsOn(TwoServers(kLeaves + straight)), "");
  const std::string crossed =
      Cable("s0/nic", "leaf0", "NIC_LEAF") + Cable("s0/nic", "leaf1", "NIC_LEAF") +
      Cable("s1/nic", "leaf1", "NIC_LEAF") + Cable("s1/nic", "leaf0", "NIC_LEAF");
  EXPECT_EQ(FindingsOn(TwoServers(kLeaves + crossed)),
            ":1:10: error: fabric.file: no path joins ports 0 of s0/nic and s1/nic, and "
            "communicator \"world\" needs one (expected SWITCHes between them, or "
            "nic.link_aggregation: true)\n");
  EXPECT_EQ(FindingsOn("routing: VALIANT\n" + TwoServers(kLeaves + straight)),
            ":3:7: error: nic.link_aggregation: false has no place on VALIANT routes, whose "
            "detours are not of ports (expected true, or a fabric with other routes)\n");
}

TEST(NetIbLoaderTest, PortsThatAreCabledToEachOtherAreRefused) {
  EXPECT_EQ(FindingsOn(TwoServers(Cable("s0/nic", "s1/nic", "DIRECT") +
                                  Cable("s0/nic", "s1/nic", "DIRECT"))),
            ":3:7: error: nic.link_aggregation: false has no place where NICs are cabled to each "
            "other (expected true, or switches between them)\n");
}

}  // namespace
}  // namespace railyard
