// SPDX-License-Identifier: GPL-2.0-only
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/format_test.h"
#include "topologies/formats/nccl_topology_writer.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::HasSubstr;

constexpr const char* kHead =
    "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n";
constexpr const char* kTail = "  </cpu>\n</system>\n";

std::string Pci(const std::string& busid, const std::string& pci_class, const std::string& inside,
                const std::string& speed = "32.0 GT/s PCIe", int width = 16) {
  return "<pci busid=\"" + busid + "\" class=\"" + pci_class + "\" link_speed=\"" + speed +
         "\" link_width=\"" + std::to_string(width) + "\">\n" + inside + "</pci>\n";
}

std::string Gpu(const std::string& busid, int rank, const std::string& nvlinks = "", int sm = 90) {
  return Pci(busid, "0x030200",
             "<gpu dev=\"" + std::to_string(rank) + "\" sm=\"" + std::to_string(sm) + "\" rank=\"" +
                 std::to_string(rank) + "\" gdr=\"1\">\n" + nvlinks + "</gpu>\n");
}

std::string Nvlink(const std::string& target, int count,
                   const std::string& target_class = "0x068000") {
  return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" +
         target_class + "\"/>\n";
}

std::string Nic(const std::string& busid, const std::string& name, const std::string& speed,
                int width = 16) {
  return Pci(busid, "0x020700",
             "<nic>\n<net name=\"" + name + "\" dev=\"0\" speed=\"" + speed +
                 "\" port=\"1\" guid=\"0x1\" maxconn=\"131072\" gdr=\"1\"/>\n</nic>\n",
             "32.0 GT/s PCIe", width);
}

class NcclTopologyTest : public testing::FormatTest {
 protected:
  std::optional<FabricGraph> LoadXml(const std::string& body) {
    return Load("dump.xml", kHead + body + kTail);
  }
  std::string FindingsOf(const std::string& body) {
    LoadXml(body);
    return findings_;
  }
};

// Two PCIe switches, on each a GPU and a NIC, as in a DGX H100; the NICs in another order.
TEST_F(NcclTopologyTest, GpusTakeTheNicsOfTheirPcieSwitch) {
  const auto fabric = LoadXml(
      Pci("0000:16:00.0", "0x060400",
          Gpu("0000:18:00.0", 1, Nvlink("0000:05:00.0", 4) + Nvlink("0000:06:00.0", 5)) +
              Nic("0000:19:00.0", "mlx5_0", "400000")) +
      Pci("0000:26:00.0", "0x060400",
          Nic("0000:29:00.0", "mlx5_1", "400000", 8) +
              Gpu("0000:28:00.0", 0, Nvlink("0000:06:00.0", 4) + Nvlink("0000:05:00.0", 5))));
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(findings_, "");
  EXPECT_EQ(fabric->name, "dump");
  EXPECT_EQ(fabric->gpus().size(), 2u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kNvlink), 4u);
  const auto rate = [&](const char* cable) {
    return fabric->link(fabric->cables()[fabric->FindCable(cable).value()].forward).rate_bps;
  };
  // Rank 0 is the second in the file. Its NIC has eight lanes: half of 440 Gb/s.
  EXPECT_EQ(rate("server0/gpu0--server0/nic0"), 220'000'000'000u);
  EXPECT_EQ(rate("server0/gpu1--server0/nic1"), 440'000'000'000u);
  // 25 GB/s a link.
  EXPECT_EQ(rate("server0/gpu0--server0/nvswitch0"), 5 * 200'000'000'000u);
  EXPECT_EQ(rate("server0/gpu1--server0/nvswitch0"), 4 * 200'000'000'000u);
}

TEST_F(NcclTopologyTest, GpusWithoutANicOfTheirOwnShareAndStorageNicsAreLeftOut) {
  const auto fabric = LoadXml(Pci("0000:16:00.0", "0x060400",
                                  Gpu("0000:17:00.0", 0) + Gpu("0000:18:00.0", 1) +
                                      Nic("0000:19:00.0", "mlx5_0", "200000")) +
                              Nic("0000:60:00.0", "mlx5_9", "100000"));
  ASSERT_TRUE(fabric.has_value()) << findings_;
  // Two GPUs, the NIC, and the switch to its host bridge.
  EXPECT_EQ(CablesOf(*fabric, Tier::kHost), 4u);
  EXPECT_EQ(fabric->NicOfGpu(fabric->gpus()[1]), fabric->FindDevice("server0/nic0"));
  EXPECT_THAT(findings_,
              HasSubstr("dump.xml:1:1: warning: NICs that are nearest to no GPU are left "
                        "out: mlx5_9\n"));
}

// Two sockets with two GPUs each, of which those of the first are two switches away from their host
// bridge.
TEST_F(NcclTopologyTest, GpusWithoutNvlinkMeetOverTheTreeThatTheDumpShows) {
  const auto fabric = LoadXml(
      Pci("0000:15:00.0", "0x060400",
          Pci("0000:16:00.0", "0x060400",
              Gpu("0000:17:00.0", 0, "", 86) + Gpu("0000:18:00.0", 1, "", 86), "16.0 GT/s PCIe"),
          "16.0 GT/s PCIe") +
      Nic("0000:19:00.0", "mlx5_0", "100000") +
      "  </cpu>\n  <cpu numaid=\"1\" arch=\"x86_64\" vendor=\"GenuineIntel\">\n" +
      Gpu("0000:97:00.0", 2, "", 86) + Gpu("0000:98:00.0", 3, "", 86));
  ASSERT_TRUE(fabric.has_value()) << findings_;
  const auto links = [&](const char* from, const char* to) {
    return fabric->HostPath(fabric->FindDevice(from).value(), fabric->FindDevice(to).value())
        .size();
  };
  EXPECT_EQ(links("server0/gpu0", "server0/gpu1"), 2u);
  EXPECT_EQ(links("server0/gpu0", "server0/hostbridge0"), 3u);
  EXPECT_EQ(links("server0/gpu2", "server0/gpu3"), 2u);
  EXPECT_EQ(links("server0/gpu1", "server0/gpu2"), 5u);
  EXPECT_EQ(links("server0/gpu3", "server0/nic0"), 3u);
  EXPECT_EQ(fabric->device(fabric->gpus()[0]).compute_capability, 86u);
  // The switch's link is of PCIe 4.0, half of 440 Gb/s.
  const auto uplink = fabric->FindCable("server0/pcieswitch1--server0/hostbridge0");
  ASSERT_TRUE(uplink.has_value());
  EXPECT_EQ(fabric->link(fabric->cables()[*uplink].forward).rate_bps, 220'000'000'000u);
  EXPECT_THAT(findings_,
              HasSubstr("dump.xml:1:1: warning: whether the driver lets GPUs access each "
                        "other over PCIe is not in the file: taken for yes (otherwise "
                        "nccl { P2P_DISABLE: true })\n"));
  std::string text;
  EXPECT_EQ(ToNcclTopology(*fabric, ServerIndex{0}, text),
            "server0/gpu0 meets its NIC over PCIe switches or host bridges");
}

// As on virtual machines.
TEST_F(NcclTopologyTest, LinksOfUnknownSpeedAreThoseThatNcclTakes) {
  const auto fabric = LoadXml(
      Pci("a", "0x030200", "<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/>\n", "Unknown", 255) +
      Nic("b", "mlx5_0", "200000", 0));
  ASSERT_TRUE(fabric.has_value()) << findings_;
  // PCIe 3.0 x16: a quarter of 440 Gb/s.
  const LinkId host =
      fabric->cables()[fabric->FindCable("server0/gpu0--server0/nic0").value()].forward;
  EXPECT_EQ(fabric->link(host).rate_bps, 110'000'000'000u);
  EXPECT_EQ(
      findings_,
      "dump.xml:3:1: warning: link_speed \"Unknown\" and link_width \"255\" are taken for PCIe "
      "3.0 x16 (expected e.g. \"32.0 GT/s PCIe\" and \"16\")\n");
}

TEST_F(NcclTopologyTest, TwoGpusMayBeCabledToEachOther) {
  const auto fabric = LoadXml(Gpu("0000:17:00.0", 0, Nvlink("0000:18:00.0", 12, "0x030200"), 80) +
                              Gpu("0000:18:00.0", 1, Nvlink("0000:17:00.0", 12, "0x030200"), 80) +
                              Nic("0000:19:00.0", "mlx5_0", "200000"));
  ASSERT_TRUE(fabric.has_value()) << findings_;
  const auto cable = fabric->FindCable("server0/gpu0--server0/gpu1");
  ASSERT_TRUE(cable.has_value());
  EXPECT_EQ(fabric->link(fabric->cables()[*cable].forward).lanes, 12u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kNvlink), 1u);
}

TEST_F(NcclTopologyTest, ADumpedServerIsAPartOfAnyFabric) {
  Write("dump.xml", kHead +
                        Pci("0000:16:00.0", "0x060400",
                            Gpu("0000:17:00.0", 0) + Nic("0000:19:00.0", "mlx5_0", "200000")) +
                        Pci("0000:26:00.0", "0x060400",
                            Gpu("0000:27:00.0", 1) + Nic("0000:29:00.0", "mlx5_1", "200000")) +
                        kTail);
  const auto fabric = Load("f.textproto",
                           "rail_optimized { mixed_servers { count: 3 nccl_topology: "
                           "\"dump.xml\" } mixed_servers { count: 1 } spines: 1 }");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(fabric->gpus().size(), 3u * 2 + 8);
  const LinkId port = fabric->cables()[fabric->FindCable("server2/nic1--leaf1").value()].forward;
  EXPECT_EQ(fabric->link(port).rate_bps, 200'000'000'000u);
  Load("f.textproto",
       "leaf_spine { servers { count: 3 nccl_topology: \"dump.xml\" gpus: 4 } "
       "servers { count: 1 nccl_topology: \"none.xml\" } }");
  EXPECT_THAT(findings_, HasSubstr("leaf_spine.servers[0].gpus: has no effect beside nccl_topology "
                                   "(expected one of the two)"));
  EXPECT_THAT(findings_,
              HasSubstr("servers[1].nccl_topology: \"none.xml\": there is no such file"));
  Load("f.textproto",
       "rail_optimized { mixed_servers { count: 3 nccl_topology: \"dump.xml\" nic_ports: 2 } }");
  EXPECT_THAT(findings_, HasSubstr("mixed_servers[0].nic_ports: has no effect beside nccl_topology "
                                   "(expected one of the two)"));
}

TEST_F(NcclTopologyTest, WhatIsWrittenIsReadAsTheSameServer) {
  for (const char* platform : {"dgx-h100", "dgx-a100", "dgx-b200", "hpn-h800"}) {
    RailOptimizedSpec spec;
    spec.mixed_servers = {ServerOfPlatform(platform)};
    spec.mixed_servers.front().count = 1;
    const FabricGraph fabric = MakeRailOptimized(spec);
    std::string text;
    ASSERT_EQ(ToNcclTopology(fabric, ServerIndex{0}, text), "") << platform;
    const auto read = Load("dump.xml", text);
    ASSERT_TRUE(read.has_value()) << findings_;
    size_t in_server = 0;
    for (const Cable& cable : fabric.cables()) {
      const Tier tier = fabric.link(cable.forward).tier;
      if (tier != Tier::kNvlink && tier != Tier::kHost) continue;
      ++in_server;
      const auto same = read->FindCable(cable.name);
      ASSERT_TRUE(same.has_value()) << cable.name;
      const LinkProperties& a = fabric.link(cable.forward);
      const LinkProperties& b = read->link(read->cables()[*same].forward);
      EXPECT_EQ(a.rate_bps, b.rate_bps) << cable.name;
      EXPECT_EQ(a.lanes, b.lanes) << cable.name;
      EXPECT_EQ(a.tier, b.tier) << cable.name;
      EXPECT_EQ(a.propagation_ps, b.propagation_ps) << cable.name;
    }
    EXPECT_EQ(read->cables().size(), in_server);
  }
}

// The first of several CPUs counts (ncclTopoCpuType); those that NCCL has no name for are unknown.
TEST_F(NcclTopologyTest, TheCpuIsReadAndWritten) {
  const std::string gpu = Pci("0000:16:00.0", "0x060400",
                              Gpu("0000:17:00.0", 0) + Nic("0000:19:00.0", "mlx5_0", "200000"));
  const auto cpu_of = [&](const std::string& attributes) {
    const auto fabric =
        Load("dump.xml", "<system version=\"1\">\n<cpu numaid=\"0\" " + attributes + ">\n" + gpu +
                             "</cpu>\n<cpu numaid=\"1\" arch=\"x86_64\" "
                             "vendor=\"GenuineIntel\"/>\n</system>\n");
    return fabric ? fabric->device(fabric->gpus()[0]).cpu : CpuVendor::kUnknown;
  };
  EXPECT_EQ(cpu_of("arch=\"x86_64\" vendor=\"GenuineIntel\""), CpuVendor::kIntel);
  EXPECT_EQ(cpu_of("arch=\"x86_64\" vendor=\"AuthenticAMD\""), CpuVendor::kAmd);
  EXPECT_EQ(cpu_of("arch=\"arm64\""), CpuVendor::kArm);
  EXPECT_EQ(cpu_of("arch=\"x86_64\" vendor=\"CentaurHauls\""), CpuVendor::kUnknown);
  EXPECT_EQ(cpu_of("arch=\"ppc64\""), CpuVendor::kUnknown);
  EXPECT_EQ(cpu_of(""), CpuVendor::kUnknown);
  for (const char* cpu : {"INTEL", "AMD", "ARM"}) {
    const auto fabric = Load(
        "f.textproto", fmt::format("leaf_spine {{ servers {{ count: 1 cpu: \"{}\" }} }}\n", cpu));
    ASSERT_TRUE(fabric.has_value()) << findings_;
    std::string text;
    ASSERT_EQ(ToNcclTopology(*fabric, ServerIndex{0}, text), "");
    const auto read = Load("dump.xml", text);
    ASSERT_TRUE(read.has_value()) << findings_;
    EXPECT_EQ(CpuVendorName(read->device(read->gpus()[7]).cpu), cpu);
  }
  Write("dump.xml", kHead + gpu + kTail);
  Load("f.textproto",
       "leaf_spine { servers { count: 1 nccl_topology: \"dump.xml\" cpu: \"AMD\" } }");
  EXPECT_THAT(findings_, HasSubstr("leaf_spine.servers[0].cpu: has no effect beside nccl_topology "
                                   "(expected one of the two)"));
}

TEST_F(NcclTopologyTest, WhatTheFormatCannotSayIsRefused) {
  std::string text;
  const auto odd =
      Load("f.textproto", "leaf_spine { servers { count: 1 host_rate: \"123Gbps\" } }");
  ASSERT_TRUE(odd.has_value());
  EXPECT_THAT(ToNcclTopology(*odd, ServerIndex{0}, text), HasSubstr("no PCIe link is as fast as"));
  const auto fast =
      Load("f.textproto", "leaf_spine { servers { count: 1 nvlink_rate: \"18GBps\" } }");
  ASSERT_TRUE(fast.has_value());
  EXPECT_THAT(ToNcclTopology(*fast, ServerIndex{0}, text), HasSubstr("no GPU has NVLinks of"));
}

TEST_F(NcclTopologyTest, MistakesAreAtTheirLines) {
  const std::string gpu = Gpu("0000:17:00.0", 0);  // lines 3 to 6
  EXPECT_THAT(
      FindingsOf(gpu + Gpu("0000:17:00.0", 1)),
      HasSubstr("dump.xml:7:1: error: there is already a pci \"0000:17:00.0\", at line 3\n"));
  EXPECT_THAT(FindingsOf(Pci("", "0x030200", "")), HasSubstr("dump.xml:3:1: error: a pci without a "
                                                             "busid"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("a", 2, "0x030200"))),
              HasSubstr("dump.xml:5:1: error: an nvlink from \"a\" to itself"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("b", 2, "0x030200"))),
              HasSubstr("dump.xml:5:1: error: nvlink target \"b\" is no GPU of this file"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("b", 0))),
              HasSubstr("error: count \"0\" of nvlink (expected a number from 1 to 1024)"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("b", 1'000'000'000))),
              HasSubstr("error: count \"1000000000\" of nvlink"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("s", 2) + Nvlink("s", 2))),
              HasSubstr("GPU 0 has two nvlinks to one NVSwitch"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("s", 2), 55)),
              HasSubstr("no NVLink rate is known for sm 55"));
  EXPECT_THAT(FindingsOf(gpu + Nic("b", "mlx5_0", "0")),
              HasSubstr("error: speed \"0\" of net (expected a number from 1 to 100000000)"));
  EXPECT_THAT(FindingsOf(gpu + Nic("b", "mlx5_0", "999999999999")), HasSubstr("error: speed"));
  EXPECT_THAT(FindingsOf(gpu + Nic("b", "mlx5_0", "1") + Nic("c", "mlx5_0", "1")),
              HasSubstr("there is already a net \"mlx5_0\""));
  EXPECT_THAT(FindingsOf(Nic("b", "mlx5_0", "1000")), HasSubstr("error: there is no GPU"));
  EXPECT_THAT(FindingsOf("<gpu dev=\"0\" sm=\"90\"/>"), HasSubstr("a gpu that is not in a pci"));
  EXPECT_THAT(FindingsOf(Pci("b", "0x060400", Nvlink("a", 2))),
              HasSubstr("dump.xml:4:1: error: an nvlink outside of a gpu"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("", 2))),
              HasSubstr("error: an nvlink without target or tclass"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("b", 2, ""))),
              HasSubstr("error: an nvlink without target or tclass"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("b", 2, "0x030200") + Nvlink("b", 2, "0x030200")) +
                         Gpu("b", 1)),
              HasSubstr("a second nvlink to \"b\" (expected one with the count of both)"));
  EXPECT_THAT(FindingsOf(Gpu("a", 0, Nvlink("s", 2), 90) + Gpu("b", 1, Nvlink("s", 2), 60)),
              HasSubstr("GPUs with NVLinks of different rates (expected one kind of GPU)"));
}

TEST_F(NcclTopologyTest, DevicesOutsideOfACpuAreMistakes) {
  const auto findings_of = [this](const std::string& inside) {
    Load("dump.xml", "<system version=\"1\">\n" + inside + "</system>\n");
    return findings_;
  };
  EXPECT_THAT(findings_of(Pci("b", "0x060400", "")),
              HasSubstr("dump.xml:2:1: error: a pci outside of a cpu (expected <cpu> around it)"));
  EXPECT_THAT(findings_of("<net name=\"a\" speed=\"1\"/>\n"),
              HasSubstr("dump.xml:2:1: error: a net outside of a cpu"));
}

TEST_F(NcclTopologyTest, AServerWithoutANicIsAWarningAndInNoFabric) {
  EXPECT_TRUE(LoadXml(Gpu("a", 0)).has_value()) << findings_;
  EXPECT_THAT(findings_, HasSubstr("warning: there is no net: the server has no NIC"));
  Write("dump.xml", kHead + Gpu("a", 0) + kTail);
  EXPECT_FALSE(
      Load("f.textproto", "leaf_spine { servers { count: 2 nccl_topology: \"dump.xml\" } }")
          .has_value());
  EXPECT_THAT(findings_, HasSubstr("\"dump.xml\" has no NIC (expected at least one)"));
}

TEST_F(NcclTopologyTest, WhatIsNoDumpIsRefused) {
  Load("dump.xml", "<system version=\"2\"></system>");
  EXPECT_THAT(findings_, HasSubstr("error: version \"2\" of the format (expected \"1\")"));
  Load("dump.xml", "<system version=\"1\"><cpu>");
  EXPECT_THAT(findings_, HasSubstr("the document ends too early or goes on after its end"));
  Load("dump.xml", "<other><system version=\"1\"/></other>");
  EXPECT_THAT(findings_, HasSubstr("the document is a \"other\""));
}

TEST_F(NcclTopologyTest, EntitiesAndDepthAreBounded) {
  std::string bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE system [<!ENTITY e0 \"xxxxxxxxxx\">";
  for (int i = 1; i < 10; ++i) {
    bomb += "<!ENTITY e" + std::to_string(i) + " \"";
    for (int j = 0; j < 10; ++j) bomb += "&e" + std::to_string(i - 1) + ";";
    bomb += "\">";
  }
  Load("dump.xml", bomb + "]>\n<system version=\"&e9;\"></system>\n");
  EXPECT_THAT(findings_, HasSubstr("error: Detected an entity reference loop"))
      << "what libxml2 calls it";
  Load("dump.xml", "<!DOCTYPE system [<!ENTITY e \"1\">]>\n<system version=\"&e;\"></system>\n");
  EXPECT_THAT(findings_, HasSubstr("error: a document type declaration (expected none)"));
  std::string deep = kHead;
  for (int i = 0; i < 100'000; ++i) deep += "<pci busid=\"" + std::to_string(i) + "\">";
  Load("dump.xml", deep);
  EXPECT_THAT(findings_, HasSubstr("Excessive depth in document"));
}

}  // namespace
}  // namespace railyard
