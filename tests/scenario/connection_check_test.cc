// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/check/connection_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Gpu(int server, int index) {
  return fmt::format(
      "devices {{ name: \"s{0}/gpu{1}\" kind: GPU server: {0} local_index: {1} "
      "compute_capability: 90 }}\n",
      server, index);
}
std::string Nic(int server, int index) {
  return fmt::format("devices {{ name: \"s{0}/nic{1}\" kind: NIC server: {0} local_index: {1} }}\n",
                     server, index);
}
std::string NvSwitch(int server, int index) {
  return fmt::format(
      "devices {{ name: \"s{0}/sw{1}\" kind: NVSWITCH server: {0} local_index: {1} }}\n", server,
      index);
}
std::string Switch(const std::string& name) {
  return fmt::format("devices {{ name: \"{}\" kind: SWITCH }}\n", name);
}
std::string Link(const std::string& from, const std::string& to, const std::string& tier) {
  return fmt::format("links {{ from: \"{}\" to: \"{}\" tier: {} rate: \"400Gbps\" }}\n", from, to,
                     tier);
}
// A server of two GPUs behind one NVSwitch, each with a NIC on the leaf of its rail.
std::string Server(int server) {
  std::string text = NvSwitch(server, 0);
  for (int i = 0; i < 2; ++i) {
    const std::string at = fmt::format("s{}/", server);
    text += Gpu(server, i) + Nic(server, i);
    text += Link(fmt::format("{}gpu{}", at, i), at + "sw0", "NVLINK");
    text += Link(fmt::format("{}gpu{}", at, i), fmt::format("{}nic{}", at, i), "HOST");
    text += Link(fmt::format("{}nic{}", at, i), fmt::format("leaf{}", i), "NIC_LEAF");
  }
  return text;
}
// Servers of two GPUs whose leaves no spine joins.
std::string RailOnly(int servers) {
  std::string text = Switch("leaf0") + Switch("leaf1");
  for (int server = 0; server < servers; ++server) text += Server(server);
  return text;
}

// The findings about a scenario on a fabric written out in a file beside it.
// The tuner's choice is not what is looked at here.
constexpr const char* kRing = "algorithm: RING protocol: SIMPLE";

std::string FindingsOn(const std::string& fabric, const std::string& more,
                       const std::string& collective = "kind: ALL_REDUCE bytes: \"24KiB\"",
                       const char* choice = kRing) {
  const TextFile file("fabric { file: \"fabric.textproto\" }\nworkload { program { collectives { " +
                      collective + " } } " + choice + " }\n" + more);
  std::ofstream(file.directory() + "/fabric.textproto") << fabric;
  Diagnostics diagnostics;
  const auto scenario = LoadScenario(file.path(), {}, diagnostics);
  EXPECT_EQ(scenario == nullptr, diagnostics.HasErrors());
  return file.WithoutPath(diagnostics.ToString());
}

constexpr const char* kAllToAll = "kind: ALL_TO_ALL bytes: \"24KiB\"";

TEST(ConnectionCheckTest, GpusOfAServerThatNoNvlinkJoinsAreRefused) {
  const std::string apart = Gpu(0, 0) + Gpu(0, 1) + NvSwitch(0, 0) + NvSwitch(0, 1) +
                            Link("s0/gpu0", "s0/sw0", "NVLINK") +
                            Link("s0/gpu1", "s0/sw1", "NVLINK");
  EXPECT_EQ(FindingsOn(apart, ""),
            ":1:10: error: fabric.file: no NVLink joins s0/gpu0 and s0/gpu1, and communicator "
            "\"world\" does (expected an NVSWITCH cabled to both, or an NVLINK cable between "
            "them or from both to a third GPU)\n");
  EXPECT_EQ(FindingsOn(Gpu(0, 0) + Gpu(0, 1) + Link("s0/gpu0", "s0/gpu1", "NVLINK"), ""), "");
}

// PATH_NVB of NCCL's graph: one GPU between the two, no more.
TEST(ConnectionCheckTest, AThirdGpuJoinsTwoThatNoNvlinkJoins) {
  const std::string chain = Gpu(0, 0) + Gpu(0, 1) + Gpu(0, 2) +
                            Link("s0/gpu0", "s0/gpu1", "NVLINK") +
                            Link("s0/gpu1", "s0/gpu2", "NVLINK");
  EXPECT_EQ(FindingsOn(chain, "", kAllToAll), "");
  EXPECT_THAT(FindingsOn(chain, "nccl { P2P_LEVEL: \"NVL\" }", kAllToAll),
              HasSubstr("no NVLink joins s0/gpu0 and s0/gpu2"));
  const std::string longer = chain + Gpu(0, 3) + Link("s0/gpu2", "s0/gpu3", "NVLINK");
  EXPECT_THAT(FindingsOn(longer, "", kAllToAll), HasSubstr("no NVLink joins s0/gpu0 and s0/gpu3"));
}

TEST(ConnectionCheckTest, AChainOfNvSwitchesIsNoIsland) {
  const std::string chain =
      Gpu(0, 0) + Gpu(0, 1) + Gpu(0, 2) + NvSwitch(0, 0) + NvSwitch(0, 1) +
      Link("s0/gpu0", "s0/sw0", "NVLINK") + Link("s0/gpu1", "s0/sw0", "NVLINK") +
      Link("s0/gpu1", "s0/sw1", "NVLINK") + Link("s0/gpu2", "s0/sw1", "NVLINK");
  EXPECT_THAT(FindingsOn(chain, ""),
              HasSubstr("no NVLink joins s0/gpu2 and s0/gpu0, and communicator \"world\""));
}

TEST(ConnectionCheckTest, AGpuWithoutANicCannotLeaveItsServer) {
  const std::string fabric = Gpu(0, 0) + NvSwitch(0, 0) + Link("s0/gpu0", "s0/sw0", "NVLINK") +
                             Gpu(1, 0) + NvSwitch(1, 0) + Link("s1/gpu0", "s1/sw0", "NVLINK");
  EXPECT_EQ(FindingsOn(fabric, ""),
            ":1:10: error: fabric.file: s0/gpu0 has no NIC, and communicator \"world\" reaches "
            "other servers by it (expected one that is cabled to it)\n"
            ":1:10: error: fabric.file: s1/gpu0 has no NIC, and communicator \"world\" reaches "
            "other servers by it (expected one that is cabled to it)\n");
}

TEST(ConnectionCheckTest, NicsThatReachOneAnotherByNoSwitchAreRefused) {
  std::string fabric;
  for (int server = 0; server < 2; ++server) {
    const std::string at = fmt::format("s{}/", server);
    const std::string leaf = fmt::format("leaf{}", server);
    fabric += Gpu(server, 0) + Nic(server, 0) + Switch(leaf);
    fabric += Link(at + "gpu0", at + "nic0", "HOST") + Link(at + "nic0", leaf, "NIC_LEAF");
  }
  EXPECT_EQ(FindingsOn(fabric, ""),
            ":1:10: error: fabric.file: no path joins s0/nic0 and s1/nic0, and communicator "
            "\"world\" needs one (expected SWITCHes between them)\n");
  EXPECT_EQ(FindingsOn(fabric + Link("leaf0", "leaf1", "LEAF_SPINE"), ""), "");
}

TEST(ConnectionCheckTest, ANicThatOnlyAGpuHangsOnLeadsNowhere) {
  const std::string fabric = Gpu(0, 0) + Nic(0, 0) + Link("s0/gpu0", "s0/nic0", "HOST") +
                             Gpu(1, 0) + Nic(1, 0) + Link("s1/gpu0", "s1/nic0", "HOST");
  EXPECT_THAT(FindingsOn(fabric, ""),
              HasSubstr("s0/nic0 has no cable to the network, and communicator \"world\" reaches "
                        "other servers by it (expected a link to a SWITCH)\n"));
}

// Rings of crossNic 2 come back to their rail after every second server: of three, one hop crosses.
TEST(ConnectionCheckTest, RailsWithoutSpinesCarryRingsThatKeepToThem) {
  EXPECT_EQ(FindingsOn(RailOnly(2), ""), "");
  EXPECT_THAT(FindingsOn(RailOnly(3), ""),
              HasSubstr(" needs one (expected SWITCHes between them, or nccl.CROSS_NIC: 0)\n"));
  EXPECT_EQ(FindingsOn(RailOnly(3), "nccl { CROSS_NIC: 0 }\n"), "");
}

// Ranks of halving-doubling differ in one bit of their numbers, so in server or rail; those of
// direct exchange and PAT in both.
TEST(ConnectionCheckTest, RailsWithoutSpinesCarryExchangesThatKeepToThem) {
  const auto findings = [](const char* kind, const char* choice) {
    return FindingsOn(RailOnly(2), "", fmt::format("kind: {} bytes: \"24KiB\"", kind), choice);
  };
  EXPECT_EQ(findings("ALL_REDUCE", "algorithm: HALVING_DOUBLING"), "");
  const auto crosses = HasSubstr(
      "no path joins s0/nic0 and s1/nic1, and communicator \"world\" needs one (expected SWITCHes "
      "between them, or workload.algorithm: RING)\n");
  EXPECT_THAT(findings("ALL_REDUCE", "algorithm: DIRECT"), crosses);
  EXPECT_THAT(findings("ALL_GATHER", "algorithm: PAT"), crosses);
}

// With PXN (the default), a send leaves by the NIC on its destination's rail.
TEST(ConnectionCheckTest, RailsWithoutSpinesCarrySendsOverPxn) {
  EXPECT_EQ(FindingsOn(RailOnly(3), "", kAllToAll), "");
  EXPECT_THAT(
      FindingsOn(RailOnly(3), "nccl { PXN_DISABLE: true }\n", kAllToAll),
      HasSubstr(" needs one (expected SWITCHes between them, or nccl.PXN_DISABLE: false)\n"));
}

TEST(ConnectionCheckTest, APathHasAtMost255Links) {
  std::string fabric = Gpu(0, 0) + Nic(0, 0) + Gpu(1, 0) + Nic(1, 0) +
                       Link("s0/gpu0", "s0/nic0", "HOST") + Link("s1/gpu0", "s1/nic0", "HOST");
  // HOST, NIC_LEAF, the links between n switches, NIC_LEAF, HOST: n + 3.
  std::string chain = Switch("x0") + Link("s0/nic0", "x0", "NIC_LEAF");
  const auto extend = [&chain](int i) {
    chain += Switch(fmt::format("x{}", i));
    chain += Link(fmt::format("x{}", i - 1), fmt::format("x{}", i), "LEAF_SPINE");
  };
  for (int i = 1; i < 252; ++i) extend(i);
  EXPECT_EQ(FindingsOn(fabric + chain + Link("x251", "s1/nic0", "NIC_LEAF"), ""), "");
  extend(252);
  EXPECT_EQ(FindingsOn(fabric + chain + Link("x252", "s1/nic0", "NIC_LEAF"), ""),
            ":1:10: error: fabric.file: the shortest path of s0/nic0 and s1/nic0 has 256 links "
            "(expected at most 255)\n");
}

// Three GPUs, of which every two share an NVSwitch and all three none.
TEST(ConnectionCheckTest, NvlsNeedsAnNvSwitchOfAllGpus) {
  std::string pairs;
  for (int i = 0; i < 3; ++i) pairs += Gpu(0, i) + NvSwitch(0, i);
  for (int i = 0; i < 3; ++i) {
    for (const int nvswitch : {i, (i + 1) % 3}) {
      pairs += Link(fmt::format("s0/gpu{}", i), fmt::format("s0/sw{}", nvswitch), "NVLINK");
    }
  }
  const char* const refused =
      ":1:10: error: fabric.file: no NVSWITCH is cabled to all 3 GPUs that communicator \"world\" "
      "has in the server of s0/gpu0, and NVLS needs one (expected such an NVSWITCH, or "
      "nccl.NVLS_ENABLE: false)\n";
  for (const char* kind : {"ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER"}) {
    const std::string collective = fmt::format("kind: {} bytes: \"24KiB\"", kind);
    EXPECT_EQ(FindingsOn(pairs, "", collective, "algorithm: NVLS"), refused) << kind;
    EXPECT_EQ(FindingsOn(pairs, "", collective, "algorithm: RING"), "") << kind;
  }
  const std::string large = "kind: ALL_REDUCE bytes: \"64MiB\"";
  const std::string all = Gpu(0, 0) + Gpu(0, 1) + Gpu(0, 2) + NvSwitch(0, 0) +
                          Link("s0/gpu0", "s0/sw0", "NVLINK") +
                          Link("s0/gpu1", "s0/sw0", "NVLINK") + Link("s0/gpu2", "s0/sw0", "NVLINK");
  EXPECT_EQ(FindingsOn(all, "", large, "algorithm: NVLS"), "");
}

// Heads of one slice meet in trees over the servers, by the NICs of their rail.
TEST(ConnectionCheckTest, NvlsTreeNeedsTheCablesOfAllRails) {
  std::string fabric = RailOnly(4);
  const std::string cable = Link("s2/nic1", "leaf1", "NIC_LEAF");
  fabric.erase(fabric.find(cable), cable.size());
  const std::string collective = "kind: ALL_REDUCE bytes: \"1MiB\"";
  EXPECT_EQ(FindingsOn(RailOnly(4), "", collective, "algorithm: NVLS_TREE"), "");
  EXPECT_EQ(FindingsOn(fabric, "", collective, "algorithm: NVLS_TREE"),
            ":1:10: error: fabric.file: s2/nic1 has no cable to the network, and communicator "
            "\"world\" reaches other servers by it (expected a link to a SWITCH)\n");
}

// With CollNet, GPUs hand their slices to the GPU whose NIC adds them up: of a server and of rails.
TEST(ConnectionCheckTest, CollnetNeedsAllPairsOfAServerAndAllRails) {
  std::string fabric = RailOnly(2);
  const std::string sums =
      "network { network_flow_control: CREDITS }\nnccl { COLLNET_ENABLE: 1 }\n";
  const std::string collective = "kind: ALL_REDUCE bytes: \"1MiB\"";
  for (const char* choice :
       {"algorithm: COLLNET_DIRECT", "algorithm: COLLNET_CHAIN", "algorithm: NVLS"}) {
    EXPECT_EQ(FindingsOn(fabric, sums, collective, choice), "") << choice;
  }
  const std::string cable = Link("s1/nic0", "leaf0", "NIC_LEAF");
  fabric.erase(fabric.find(cable), cable.size());
  for (const char* choice :
       {"algorithm: COLLNET_DIRECT", "algorithm: COLLNET_CHAIN", "algorithm: NVLS"}) {
    EXPECT_THAT(FindingsOn(fabric, sums, collective, choice),
                HasSubstr("s1/nic0 has no cable to the network"))
        << choice;
  }
}

TEST(ConnectionCheckTest, ManyAreCountedRatherThanListed) {
  std::string fabric;
  for (int i = 0; i < 12; ++i) {
    fabric += Gpu(0, i) + NvSwitch(0, i);
    fabric += Link(fmt::format("s0/gpu{}", i), fmt::format("s0/sw{}", i), "NVLINK");
  }
  const std::string findings = FindingsOn(fabric, "");
  EXPECT_EQ(std::count(findings.begin(), findings.end(), '\n'), 9);
  // A ring of 12 has 12 hops.
  EXPECT_THAT(findings, HasSubstr(":1:10: error: fabric.file: 4 more like these\n"));
}

// Pairs grow with the square of the ranks, what is looked at with their number.
TEST(ConnectionCheckTest, ThousandsOfRanksThatExchangeAreCheckedAtOnce) {
  const auto findings_of = [](const char* fabric, const char* workload) {
    return LoadedScenario(fmt::format("fabric {{ {} }}\nworkload {{ {} }}\n", fabric, workload))
        .findings;
  };
  constexpr const char* kServers = "rail_optimized { servers: 1025 }";
  // 8,200 ranks: 8,200 x 8,199 ordered pairs are more than 2^26.
  constexpr const char* kTooMany =
      ":2:1: warning: workload: run will refuse it: its Sends, Recvs and exchanges open 67231800 "
      "connections between GPUs or more (a run has at most 67108864)\n";
  EXPECT_EQ(
      findings_of(kServers, "program { collectives { kind: ALL_TO_ALL bytes: \"65600000\" } }"),
      kTooMany);
  EXPECT_EQ(findings_of(kServers,
                        "program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } algorithm: "
                        "DIRECT"),
            kTooMany);
}

// Over a switch that it draws, a flow crosses a ring of 260 routers up to twice half-way round, 260
// links, and 4 more at its ends; straight it is 130.
TEST(ConnectionCheckTest, DrawnDetoursHaveAtMost255Links) {
  const auto findings_of = [](int routers, bool valiant) {
    return LoadedScenario(
               fmt::format("fabric {{ torus {{ servers {{ count: {0} gpus: 1 }} dimensions: [{0}] "
                           "valiant: {1} }} }}\nworkload {{ program {{ collectives {{ kind: "
                           "ALL_TO_ALL bytes: \"1040000\" }} }} }}\n",
                           routers, valiant))
        .findings;
  };
  EXPECT_EQ(findings_of(260, false), "");
  EXPECT_EQ(findings_of(250, true), "");
  EXPECT_EQ(findings_of(260, true),
            ":1:10: error: fabric.torus: paths over a switch that flows draw have up to 264 links "
            "(expected at most 255, or valiant: false)\n");
}

TEST(ConnectionCheckTest, GeneratedFabricsJoinWhatAJobConnects) {
  for (const char* collective : {"kind: ALL_REDUCE bytes: \"24KiB\"", kAllToAll}) {
    const LoadedScenario loaded(
        "fabric { rail_optimized { servers: 3 } }\nworkload { program { collectives { " +
        std::string(collective) + " } } }\nnccl { PXN_DISABLE: true }\n");
    EXPECT_THAT(loaded.findings, Not(HasSubstr("fabric")));
  }
}

// The findings about 8 ranks that exchange tokens with DeepEP's low-latency kernel.
std::string FindingsOfKernelOn(const std::string& platform, const std::string& more) {
  const TextFile file(
      "fabric { rail_optimized { mixed_servers { count: 1 platform: \"" + platform + "\" } } }\n" +
      "workload { inline_plan { model { layers: 1 hidden: 1024 heads: 8 vocabulary: 1024 "
      "experts { count: 8 per_token: 2 feed_forward: 256 kernel: DEEPEP_LOW_LATENCY } } "
      "parallelism { data: 8 expert: 8 } "
      "compute { given { attention: \"1us\" feed_forward: \"1us\" embedding: \"1us\" "
      "output_layer: \"1us\" backward_ratio: 2 optimizer: \"1us\" } } "
      "training { sequence: 8 micro_batch: 1 micro_batches: 1 } } }\n" +
      more);
  Diagnostics diagnostics;
  const auto scenario = LoadScenario(file.path(), {}, diagnostics);
  EXPECT_EQ(scenario == nullptr, diagnostics.HasErrors());
  return file.WithoutPath(diagnostics.ToString());
}

// A DGX-1 has four NICs for its eight GPUs.
TEST(ConnectionCheckTest, GpusThatShareANicCannotWriteToEachOtherByRdma) {
  EXPECT_EQ(FindingsOfKernelOn("dgx-h100", ""), "");
  EXPECT_THAT(FindingsOfKernelOn("dgx-1-v100", ""),
              HasSubstr("the expert kernel writes from rank 0 to rank 4 by RDMA, but both have "
                        "server0/nic0 (expected a NIC for each GPU, or kernel: NCCL)\n"));
}

TEST(ConnectionCheckTest, ExpertKernelsNeedRdma) {
  const char* const expected =
      "the job's kernels of experts write by RDMA over InfiniBand or RoCE (expected IB, or experts "
      "of kernel: NCCL)";
  EXPECT_THAT(FindingsOfKernelOn("dgx-h100", "nccl { NET: \"Socket\" }"),
              HasSubstr(std::string(":3:8: error: nccl.NET: ") + expected));
  EXPECT_THAT(FindingsOfKernelOn("dgx-h100", "nccl { NET: \"AWS Libfabric\" }"),
              HasSubstr(std::string(":3:8: error: nccl.NET: ") + expected));
  EXPECT_THAT(FindingsOfKernelOn("dgx-h100", "nccl { IB_DISABLE: true }"),
              HasSubstr(std::string(":3:8: error: nccl.IB_DISABLE: ") + expected));
}

}  // namespace
}  // namespace railyard
