// SPDX-License-Identifier: GPL-2.0-only
// TCP sockets between servers: defaults, and what is refused beside them or without them.
#include <gtest/gtest.h>

#include "simulator/transport/tcp/tcp_stream.h"
#include "simulator/units/units.h"
#include "tests/scenario/control_names.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

const std::string kSocket = "nccl { NET: \"Socket\" }\n";

// ncclNetSocketGetNsockNthread of src/transport/net_socket.cc, NCCL 2.30, for a NIC of a vendor it
// does not know: no helper threads.
TEST(NetSocketLoaderTest, DefaultsAreNcclsAndLinuxs) {
  for (const char* text :
       {"nccl { NET: \"Socket\" }", "nccl { NET: \"socket\" }", "nccl { IB_DISABLE: true }"}) {
    const auto scenario = LoadBeside(text);
    ASSERT_NE(scenario, nullptr);
    EXPECT_TRUE(scenario->stack.socket.enabled) << text;
    EXPECT_EQ(scenario->stack.socket.nthreads, 0u);
    EXPECT_EQ(scenario->stack.socket.data_sockets(), 0u);
    EXPECT_EQ(scenario->stack.socket.send_rate_bps, 89'000'000'000u);
    EXPECT_EQ(scenario->stack.socket.receive_rate_bps, 42'000'000'000u);
    EXPECT_TRUE(scenario->stack.nic.is_tcp);
    EXPECT_EQ(scenario->stack.nic.mtu_bytes, 1'448u);  // 1,500 - 20 - 20 - 12
    EXPECT_EQ(scenario->stack.nic.ack_every_packets, 2u);
    EXPECT_EQ(scenario->stack.nic.window_bytes, kTcpWindowBytes);
    EXPECT_EQ(scenario->stack.nic.congestion_control.GetTypeId().GetName(), "railyard::Cubic");
    EXPECT_FALSE(scenario->nccl.UsesPxn());
    EXPECT_FALSE(scenario->nccl.AllowsLl128BetweenServers(CollectiveKind::kAllReduce));
    EXPECT_EQ(AttributeOf(*scenario, "NetworkFlowControl"), "NONE");
    EXPECT_EQ(AttributeOf(*scenario, "EcnEnabled"), "false");
  }
  for (const char* text : {"", "nccl { NET: \"IB\" }", "nccl { IB_DISABLE: false }"}) {
    const auto scenario = LoadBeside(text);
    ASSERT_NE(scenario, nullptr);
    EXPECT_FALSE(scenario->stack.socket.enabled) << text;
    EXPECT_FALSE(scenario->stack.nic.is_tcp);
    EXPECT_TRUE(scenario->nccl.UsesPxn());
  }
}

TEST(NetSocketLoaderTest, ValuesAreTaken) {
  const auto scenario = LoadBeside(
      "nccl { NET: \"Socket\" SOCKET_NTHREADS: 4 NSOCKS_PERTHREAD: 2 PROTO: \"LL128\" }\n"
      "gpu { socket_send_rate: \"50Gbps\" socket_receive_rate: \"20Gbps\" }\n"
      "nic { mtu_bytes: 9000 window: \"1MiB\" congestion_control { cubic { beta: 0.5 } } }\n");
  ASSERT_NE(scenario, nullptr);
  EXPECT_EQ(scenario->stack.socket.data_sockets(), 8u);
  EXPECT_EQ(scenario->stack.socket.send_rate_bps, 50'000'000'000u);
  EXPECT_EQ(scenario->stack.socket.receive_rate_bps, 20'000'000'000u);
  EXPECT_EQ(scenario->stack.nic.mtu_bytes, 8'948u);
  EXPECT_EQ(scenario->stack.nic.window_bytes, 1u << 20);
  // As NCCL, where it is named.
  EXPECT_TRUE(scenario->nccl.AllowsLl128BetweenServers(CollectiveKind::kAllReduce));
}

TEST(NetSocketLoaderTest, WhatIsOfRdmaIsRefusedBesideThem) {
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" IB_TIMEOUT: 14 }"),
            ":3:22: error: nccl.IB_TIMEOUT: has no effect on TCP sockets\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" PXN_DISABLE: true }"),
            ":3:22: error: nccl.PXN_DISABLE: has no effect on TCP sockets: PXN is of NICs that "
            "reach GPU memory\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" COLLNET_ENABLE: 1 }"),
            ":3:22: error: nccl.COLLNET_ENABLE: 1 needs switches that reduce, which are "
            "InfiniBand's (expected 0 with TCP sockets)\n");
  EXPECT_EQ(FindingsBeside(kSocket + "nic { recovery: GO_BACK_N }"),
            ":4:7: error: nic.recovery: has no effect on TCP sockets\n");
  EXPECT_EQ(FindingsBeside(kSocket + "nic { congestion_control { dcqcn {} } }"),
            ":4:7: error: nic.congestion_control: dcqcn is of RDMA (expected cubic with TCP "
            "sockets)\n");
  EXPECT_EQ(FindingsBeside(kSocket + "network { network_flow_control: PFC }"),
            ":4:11: error: network.network_flow_control: TCP is in a class that loses what has no "
            "room (expected NONE with TCP sockets)\n");
  EXPECT_EQ(FindingsBeside(kSocket + "switch { ecn_enabled: true }"),
            ":4:10: error: switch.ecn_enabled: has no effect on TCP without ECN\n");
  EXPECT_EQ(FindingsBeside(kSocket + "nic { mtu_bytes: 512 }"),
            ":4:7: error: nic.mtu_bytes: 512 is no MTU for IP (expected 576 to 9216, e.g. 1500 or "
            "9000)\n");
  EXPECT_EQ(LoadedScenario(std::string(kFabric) +
                           "workload { program { collectives { kind: ALL_TO_ALL bytes: \"1MiB\" "
                           "loss_tolerance: 0.01 } } }\n" +
                           kSocket)
                .findings,
            ":3:8: error: nccl.NET: TCP delivers every byte (expected RDMA, or no "
            "loss_tolerance)\n");
}

TEST(NetSocketLoaderTest, WhatIsOfThemIsRefusedWithoutThem) {
  EXPECT_EQ(FindingsBeside("nccl { SOCKET_NTHREADS: 2 }"),
            ":3:8: error: nccl.SOCKET_NTHREADS: has no effect: the network is RDMA (expected NET: "
            "\"Socket\" beside it)\n");
  EXPECT_EQ(FindingsBeside("gpu { socket_send_rate: \"1Gbps\" }"),
            ":3:7: error: gpu.socket_send_rate: has no effect: the network is RDMA (expected "
            "nccl.NET: \"Socket\")\n");
  EXPECT_EQ(FindingsBeside("nic { congestion_control { cubic {} } }"),
            ":3:7: error: nic.congestion_control: cubic is of TCP (expected " + RdmaControlNames() +
                ", or nccl.NET: \"Socket\")\n");
}

TEST(NetSocketLoaderTest, SocketsAreAsManyAsNcclAllows) {
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" NSOCKS_PERTHREAD: 2 }"),
            ":3:22: error: nccl.NSOCKS_PERTHREAD: has no effect without helper threads (expected "
            "SOCKET_NTHREADS of 1 or more)\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" SOCKET_NTHREADS: 8 NSOCKS_PERTHREAD: 9 }"),
            ":3:41: error: nccl.NSOCKS_PERTHREAD: 9 x SOCKET_NTHREADS of 8 are too many sockets "
            "(expected at most 64)\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"Socket\" SOCKET_NTHREADS: 17 }"),
            ":3:22: error: nccl.SOCKET_NTHREADS: 17 is out of range (expected 0 to 16)\n");
}

}  // namespace
}  // namespace railyard
