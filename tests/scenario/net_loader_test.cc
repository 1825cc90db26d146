// SPDX-License-Identifier: GPL-2.0-only
// Tests the network between servers: names, values that a plug-in sets, and fields that are refused
// with it or without it.
#include "simulator/scenario/models/net_loader.h"

#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

TEST(NetLoaderTest, NamesAreNccls) {
  for (const char* text : {"nccl { NET: \"AWS Libfabric\" }", "nccl { NET: \"aws libfabric\" }",
                           "nccl { NET: \"AWS Libfabric\" IB_DISABLE: true }"}) {
    const auto scenario = LoadBeside(text);
    ASSERT_NE(scenario, nullptr);
    EXPECT_EQ(scenario->nccl.net, NetPlugin::kAwsLibfabric) << text;
    EXPECT_EQ(scenario->gpu.net, NetPlugin::kAwsLibfabric);
    EXPECT_FALSE(scenario->stack.socket.enabled);
    EXPECT_TRUE(scenario->nccl.UsesPxn());
  }
  EXPECT_EQ(LoadBeside("nccl { IB_DISABLE: true }")->nccl.net, NetPlugin::kSocket);
  EXPECT_EQ(LoadBeside("")->nccl.net, NetPlugin::kIb);
  EXPECT_EQ(FindingsBeside("nccl { NET: \"AWS\" }"),
            ":3:8: error: nccl.NET: \"AWS\" is no network of NCCL's own or Amazon's (expected "
            "\"IB\", \"Socket\" or \"AWS Libfabric\")\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"IB\" IB_DISABLE: true }"),
            ":3:8: error: nccl.NET: \"IB\" contradicts IB_DISABLE: true (expected \"Socket\")\n");
}

// platform_data_map of aws-ofi-nccl (src/platform-aws.cpp): NCCL_BUFFSIZE 8388608 and the others
// 524288, none of which replaces what the user has set.
TEST(NetLoaderTest, AmazonsPlugInSetsNcclsVariablesWhereTheUserHasNot) {
  const auto plugin = LoadBeside("nccl { NET: \"AWS Libfabric\" }");
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->nccl.buffsize_bytes, 8'388'608u);
  EXPECT_EQ(plugin->nccl.p2p_net_chunksize_bytes, 524'288u);
  EXPECT_EQ(plugin->nccl.nvls_chunksize_bytes, 524'288u);
  EXPECT_EQ(plugin->nccl.nvlstree_max_chunksize_bytes, 524'288u);
  EXPECT_EQ(plugin->nccl.ofi_net_latency_us, std::nullopt);
  // NCCL 2.20 is as old as the plug-in's pull requests 332 and 372, NCCL 2.27 as its release 1.16.
  const auto before = LoadBeside("nccl { NET: \"AWS Libfabric\" version: \"2.26.5\" }");
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->nccl.buffsize_bytes, 4u << 20);
  EXPECT_EQ(before->nccl.p2p_net_chunksize_bytes, 128u << 10);
  EXPECT_EQ(before->nccl.nvls_chunksize_bytes, 524'288u);
  const auto first = LoadBeside("nccl { NET: \"AWS Libfabric\" version: \"2.19.3\" }");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->nccl.nvls_chunksize_bytes, 128u << 10);
  EXPECT_EQ(first->nccl.nvlstree_max_chunksize_bytes, std::nullopt);
  const auto stated = LoadBeside(
      "nccl { NET: \"AWS Libfabric\" BUFFSIZE: \"4MiB\" P2P_NET_CHUNKSIZE: \"128KiB\" "
      "NVLS_CHUNKSIZE: \"256KiB\" NVLSTREE_MAX_CHUNKSIZE: \"64KiB\" OFI_NCCL_NET_LATENCY: 35.5 "
      "IB_TIMEOUT: 14 }");
  ASSERT_NE(stated, nullptr);
  EXPECT_EQ(stated->nccl.buffsize_bytes, 4u << 20);
  EXPECT_EQ(stated->nccl.p2p_net_chunksize_bytes, 128u << 10);
  EXPECT_EQ(stated->nccl.nvls_chunksize_bytes, 256u << 10);
  EXPECT_EQ(stated->nccl.nvlstree_max_chunksize_bytes, 64u << 10);
  EXPECT_EQ(stated->nccl.ofi_net_latency_us, 35.5);
  EXPECT_EQ(stated->stack.nic.ib_timeout, 14u);  // SRD's own is not public
}

// SRD: Shalev et al., IEEE Micro 40(6), 2020.
TEST(NetLoaderTest, EfaSpraysPacketsAndRepeatsThemOneByOneUnlessConfiguredOtherwise) {
  const std::string efa = "nccl { NET: \"AWS Libfabric\" }\n";
  for (const char* more : {"", "nic { mtu_bytes: 1024 } network { network_flow_control: NONE }"}) {
    const auto scenario = LoadBeside(efa + more);
    ASSERT_NE(scenario, nullptr);
    EXPECT_EQ(scenario->stack.nic.recovery, Recovery::kSelectiveRepeat);
    EXPECT_EQ(scenario->stack.nic.reorder_tolerance_packets, 63u);
    EXPECT_EQ(AttributeOf(*scenario, "LoadBalancing"), "SPRAYING");
  }
  const auto stated = LoadBeside(efa +
                                 "nic { recovery: GO_BACK_N reorder_tolerance_packets: 0 } "
                                 "network { load_balancing: ECMP }");
  ASSERT_NE(stated, nullptr);
  EXPECT_EQ(stated->stack.nic.recovery, Recovery::kGoBackN);
  EXPECT_EQ(stated->stack.nic.reorder_tolerance_packets, 0u);
  EXPECT_EQ(AttributeOf(*stated, "LoadBalancing"), "ECMP");
  const auto infiniband = LoadBeside("");
  ASSERT_NE(infiniband, nullptr);
  EXPECT_EQ(infiniband->stack.nic.recovery, Recovery::kGoBackN);
  EXPECT_EQ(AttributeOf(*infiniband, "LoadBalancing"), "");
}

TEST(NetLoaderTest, WhatIsOfInfiniBandIsRefusedOverEfa) {
  EXPECT_EQ(
      FindingsBeside("nccl { NET: \"AWS Libfabric\" } nic { link_aggregation: false }"),
      ":3:37: error: nic.link_aggregation: has no effect on NICs of one port (expected a fabric "
      "whose NICs have several)\n");
  EXPECT_EQ(LoadedScenario(std::string(kFabric) +
                           "workload { program { collectives { kind: ALL_TO_ALL bytes: \"1MiB\" "
                           "loss_tolerance: 0.01 } } }\n"
                           "nccl { NET: \"AWS Libfabric\" }")
                .findings,
            ":3:8: error: nccl.NET: EFA delivers every byte (expected RDMA, or no "
            "loss_tolerance)\n");
  const std::string valiant =
      "fabric { torus { servers { count: 4 platform: \"single-gpu\" } dimensions: [2, 2] valiant: "
      "true } }\n";
  EXPECT_EQ(LoadedScenario(valiant + kWorkload + "nccl { NET: \"AWS Libfabric\" }").findings,
            ":3:8: error: nccl.NET: switches cannot balance VALIANT_DIMENSION_ORDER routes, on "
            "which each flow draws its own way (expected network.load_balancing: ECMP, or a fabric "
            "with other routes)\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"AWS Libfabric\" IB_QPS_PER_CONNECTION: 2 }"),
            ":3:29: error: nccl.IB_QPS_PER_CONNECTION: has no effect on EFA\n");
  EXPECT_EQ(FindingsBeside("nccl { NET: \"AWS Libfabric\" COLLNET_ENABLE: 1 }\n"
                           "network { network_flow_control: CREDITS }"),
            ":3:29: error: nccl.COLLNET_ENABLE: 1 needs switches that reduce, which are "
            "InfiniBand's (expected 0 with EFA)\n");
}

TEST(NetLoaderTest, WhatThePlugInTellsTheTunerIsOfThePlugIn) {
  EXPECT_EQ(FindingsBeside("nccl { OFI_NCCL_NET_LATENCY: 75 }"),
            ":3:8: error: nccl.OFI_NCCL_NET_LATENCY: has no effect: it is Amazon's plug-in's "
            "(expected NET: \"AWS Libfabric\" beside it)\n");
  for (const char* us : {"-1", "1000001"}) {
    EXPECT_EQ(FindingsBeside(std::string("nccl { NET: \"AWS Libfabric\" OFI_NCCL_NET_LATENCY: ") +
                             us + " }"),
              std::string(":3:29: error: nccl.OFI_NCCL_NET_LATENCY: ") + us +
                  " is out of range (expected 0 to 1000000 us)\n");
  }
  EXPECT_EQ(FindingsBeside("nccl { version: \"2.19.3\" NVLSTREE_MAX_CHUNKSIZE: \"64KiB\" }"),
            ":3:26: error: nccl.NVLSTREE_MAX_CHUNKSIZE: NCCL has it from 2.20 on, the job's is "
            "2.19.3\n");
  EXPECT_EQ(FindingsBeside("nccl { NVLSTREE_MAX_CHUNKSIZE: \"1MiB\" }"),
            ":3:8: error: nccl.NVLSTREE_MAX_CHUNKSIZE: 1 MiB is out of range (expected 16 KiB to "
            "512 KiB)\n");
}

}  // namespace
}  // namespace railyard
