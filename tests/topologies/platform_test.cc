// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/platform.h"

#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/format_test.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FabricGraph LoneServer(const ServerSpec& server) {
  const NetworkSpec network = {.servers = {server}};
  FabricBuilder builder(network);
  builder.AddServers();
  return std::move(builder).Take();
}

// Returns the cables of a server with NICs, without the server's name.
std::string CablesOf(const FabricGraph& fabric) {
  std::string text;
  for (const Cable& cable : fabric.cables()) {
    const LinkProperties& link = fabric.link(cable.forward);
    text += fmt::format("{} {} {} {} {}\n", cable.name, TierName(link.tier), link.rate_bps,
                        link.propagation_ps, link.lanes);
  }
  for (DeviceId id{0}; id < fabric.device_count(); ++id) {
    text += fmt::format("{} {}\n", fabric.device(id).name, fabric.device(id).forwarding_latency_ps);
  }
  return text;
}

TEST(PlatformTest, EveryFileShipsAndIsReadWithoutFindings) {
  std::set<std::string> files;
  const std::string directory = RAILYARD_SOURCE_DIR "/topologies/platforms";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".textproto") continue;
    Diagnostics diagnostics;
    const auto platform = LoadPlatform(entry.path().string(), diagnostics);
    ASSERT_TRUE(platform.has_value()) << diagnostics.ToString();
    const Platform* const shipped = FindPlatform(platform->name);
    ASSERT_NE(shipped, nullptr) << platform->name;
    EXPECT_EQ(CablesOf(LoneServer(shipped->server)), CablesOf(LoneServer(platform->server)));
    EXPECT_FALSE(platform->description.empty()) << platform->name;
    files.insert(platform->name);
  }
  EXPECT_EQ(files.size(), Platforms().size());
  for (const char* name : {"dgx-1-v100", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300",
                           "gb200-nvl72", "gb300-nvl72", "gh200", "h20", "dgx-h800", "mi300x"}) {
    EXPECT_TRUE(files.contains(name)) << name;
  }
}

// The default of generators is a DGX H100.
TEST(PlatformTest, TheDefaultServerIsADgxH100) {
  EXPECT_EQ(CablesOf(LoneServer(ServerSpec{})), CablesOf(LoneServer(ServerOfPlatform("dgx-h100"))));
}

// NVLink each way of a GPU, in GB/s (data sheets), and NICs in Gb/s.
TEST(PlatformTest, RatesAreThoseOfTheDataSheets) {
  struct Case {
    const char* name;
    uint32_t gpus;
    uint64_t nvlink_gb_per_s;
    uint64_t nic_gbps;
    size_t nvswitches;
  };
  for (const Case& expected :
       {Case{"dgx-a100", 8, 300, 200, 6}, Case{"dgx-h100", 8, 450, 400, 4},
        Case{"dgx-h200", 8, 450, 400, 4}, Case{"dgx-b200", 8, 900, 400, 2},
        Case{"gb200-nvl72", 72, 900, 400, 18}, Case{"hpn-h800", 8, 200, 200, 4},
        Case{"dgx-b300", 8, 900, 800, 2}, Case{"gb300-nvl72", 72, 900, 800, 18},
        Case{"h20", 8, 450, 400, 4}}) {
    const ServerSpec server = ServerOfPlatform(expected.name);
    EXPECT_EQ(server.gpus, expected.gpus) << expected.name;
    EXPECT_EQ(server.nic_rate_bps, expected.nic_gbps * 1'000'000'000) << expected.name;
    EXPECT_EQ(server.nvlink_lanes.size(), expected.nvswitches) << expected.name;
    uint64_t lanes = 0;
    for (const uint32_t of_nvswitch : server.nvlink_lanes) lanes += of_nvswitch;
    EXPECT_EQ(lanes * server.nvlink_lane_rate_bps, expected.nvlink_gb_per_s * 8'000'000'000)
        << expected.name;
  }
}

// An H800's eight NVLinks carry 160 of 200 GB/s as payload (arXiv 2505.09343), which is 0.824 of
// what links carry here.
TEST(PlatformTest, NvlinksOfH800CarryWhatDeepSeekMeasured) {
  const ServerSpec server = ServerOfPlatform("dgx-h800");
  EXPECT_EQ(server.gpus, 8u);
  EXPECT_EQ(server.nic_rate_bps, 400'000'000'000u);
  EXPECT_THAT(server.nvlink_lanes, ElementsAre(2, 2, 2, 2));
  EXPECT_NEAR(8 * static_cast<double>(server.nvlink_lane_rate_bps) * 0.824 / 8e9, 160, 0.01);
}

// Six NVLinks of 25 GB/s between every two of four (arXiv 2408.11556): 150 GB/s each way.
TEST(PlatformTest, GraceHoppersAreJoinedAllToAll) {
  const ServerSpec server = ServerOfPlatform("gh200");
  EXPECT_EQ(server.nic_rate_bps, 200'000'000'000u);
  const FabricGraph fabric = LoneServer(server);
  ASSERT_EQ(fabric.gpus().size(), 4u);
  for (const DeviceId gpu : fabric.gpus()) {
    EXPECT_EQ(fabric.device(gpu).compute_capability, 90u);
    for (const DeviceId peer : fabric.gpus()) {
      if (gpu == peer) continue;
      uint64_t rate_bps = 0;
      for (const FabricGraph::NvlinkPath& path : fabric.NvlinkPaths(gpu, peer)) {
        rate_bps += path.lanes * server.nvlink_lane_rate_bps;
      }
      EXPECT_EQ(rate_bps, 150u * 8'000'000'000);
    }
  }
}

// Seven xGMI links of an MI300X, one to each other; 48 GB/s of payload each (AMD's ROCm blog),
// which is 0.824 of what links carry here.
TEST(PlatformTest, Mi300xAreJoinedAllToAll) {
  const ServerSpec server = ServerOfPlatform("mi300x");
  EXPECT_EQ(server.nic_rate_bps, 400'000'000'000u);
  EXPECT_NEAR(static_cast<double>(server.nvlink_lane_rate_bps) * 0.824 / 8e9, 48, 0.05);
  const FabricGraph fabric = LoneServer(server);
  ASSERT_EQ(fabric.gpus().size(), 8u);
  for (const DeviceId gpu : fabric.gpus()) {
    EXPECT_EQ(fabric.device(gpu).compute_capability, 94u);
    for (const DeviceId peer : fabric.gpus()) {
      if (gpu == peer) continue;
      ASSERT_EQ(fabric.NvlinkPaths(gpu, peer).size(), 1u);
      EXPECT_EQ(fabric.NvlinkPaths(gpu, peer).front().lanes, 1u);
    }
  }
}

// As their user guides and data sheets say.
TEST(PlatformTest, CpusAreThoseOfTheMachines) {
  for (const auto& [name, cpu] :
       {std::pair("dgx-1-v100", CpuVendor::kIntel), std::pair("dgx-a100", CpuVendor::kAmd),
        std::pair("dgx-h100", CpuVendor::kIntel), std::pair("dgx-h200", CpuVendor::kIntel),
        std::pair("dgx-b200", CpuVendor::kIntel), std::pair("gb200-nvl72", CpuVendor::kArm),
        std::pair("dgx-b300", CpuVendor::kIntel), std::pair("gb300-nvl72", CpuVendor::kArm),
        std::pair("gh200", CpuVendor::kArm), std::pair("hpn-h800", CpuVendor::kUnknown),
        std::pair("single-gpu", CpuVendor::kUnknown)}) {
    const FabricGraph fabric = LoneServer(ServerOfPlatform(name));
    EXPECT_EQ(fabric.device(fabric.gpus().back()).cpu, cpu) << name;
  }
  EXPECT_EQ(ServerSpec{}.cpu, ServerOfPlatform("dgx-h100").cpu);
}

class PlatformFileTest : public testing::FormatTest {};

constexpr const char* kMine = R"(# A user's server.
gpus { value: 2 source: "counted" }
nics { value: 1 source: "counted" }
nic_rate { value: "100Gbps" source: "its data sheet" }
host_rate { value: "100Gbps" source: "measured" }
host_delay { value: "1us" source: "measured" }
nvlink {
  nvswitch_lanes { values: [3] source: "its manual" }
  lane_rate { value: "200Gbps" source: "its manual" }
  delay { value: "20ns" source: "assumed" }
  nvswitch_latency { value: "30ns" source: "assumed" }
}
)";

// One server of it, in the reference fabric of its number of NICs.
TEST_F(PlatformFileTest, AUsersServerIsBuiltAsItsFileSays) {
  const auto fabric = Load("mine.textproto", kMine);
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(fabric->name, "1x-mine");
  EXPECT_EQ(CablesOf(*fabric),
            "server0/gpu0--server0/nvswitch0 NVLINK 600000000000 20000 3\n"
            "server0/gpu1--server0/nvswitch0 NVLINK 600000000000 20000 3\n"
            "server0/gpu0--server0/nic0 HOST 100000000000 1000000 1\n"
            "server0/gpu1--server0/nic0 HOST 100000000000 1000000 1\n"
            "server0/nic0--leaf0 NIC_LEAF 100000000000 145000 1\n"
            "leaf0--spine0 LEAF_SPINE 400000000000 270000 1\n"
            "server0/gpu0 0\nserver0/gpu1 0\nserver0/nvswitch0 30000\nserver0/nic0 0\n"
            "leaf0 300000\nspine0 300000\n");
}

TEST_F(PlatformFileTest, TheCpuIsThePlatformsOrWhatServersGive) {
  const auto cpu_of = [](const std::optional<FabricGraph>& fabric) {
    return fabric ? fabric->device(fabric->gpus()[0]).cpu : CpuVendor::kUnknown;
  };
  const std::string mine = kMine;
  EXPECT_EQ(cpu_of(Load("mine.textproto", mine)), CpuVendor::kUnknown);
  EXPECT_EQ(cpu_of(Load("mine.textproto", mine + "cpu { value: \"ARM\" source: \"a\" }\n")),
            CpuVendor::kArm);
  const auto servers = [](const std::string& more) {
    return "rail_optimized { mixed_servers { count: 1 platform: \"mine.textproto\" " + more +
           "} }\n";
  };
  EXPECT_EQ(cpu_of(Load("fabric.textproto", servers(""))), CpuVendor::kArm);
  EXPECT_EQ(cpu_of(Load("fabric.textproto", servers("cpu: \"AMD\" "))), CpuVendor::kAmd);
  Load("fabric.textproto", servers("cpu: \"amd\" "));
  EXPECT_EQ(findings_,
            "fabric.textproto:1:70: error: rail_optimized.mixed_servers[0].cpu: unknown maker of "
            "CPUs \"amd\" (expected \"INTEL\", \"AMD\" or \"ARM\")\n");
  Load("mine.textproto", mine + "cpu { value: \"EPYC\" source: \"a\" }\n");
  EXPECT_EQ(findings_,
            "mine.textproto:13:7: error: cpu.value: unknown maker of CPUs \"EPYC\" (expected "
            "\"INTEL\", \"AMD\" or \"ARM\")\n");
  Load("mine.textproto", mine + "cpu { }\n");
  EXPECT_EQ(findings_,
            "mine.textproto:13:1: error: cpu.source: missing (expected where the number is "
            "from)\n"
            "mine.textproto:13:1: error: cpu.value: missing (expected \"INTEL\", \"AMD\" or "
            "\"ARM\")\n");
}

TEST_F(PlatformFileTest, AFabricNamesTheFileWhereItCouldNameAPlatform) {
  Write("mine.textproto", kMine);
  const auto fabric = Load(
      "fabric.textproto",
      "rail_optimized { mixed_servers { count: 3 platform: \"mine.textproto\" nic_rate: \"25Gbps\" "
      "} }\n");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(fabric->gpus().size(), 6u);
  const auto link = [&](const char* name) {
    return fabric->link(fabric->cables()[fabric->FindCable(name).value()].forward);
  };
  EXPECT_EQ(link("server2/nic0--leaf0").rate_bps, 25'000'000'000u);
  EXPECT_EQ(link("server2/gpu1--server2/nvswitch0").rate_bps, 600'000'000'000u);
}

TEST_F(PlatformFileTest, NumbersThatAFileLeavesOpenAreGivenWhereItIsUsed) {
  const std::string all =
      "gpus: 4 nic_rate: \"100Gbps\" host_rate: \"100Gbps\" host_delay: \"1us\" nvlink_rate: "
      "\"300GBps\" nvlink_delay: \"100ns\" nvswitch_latency: \"50ns\"";
  const auto fabric =
      Load("fabric.textproto",
           "rail_optimized { mixed_servers { count: 1 platform: \"generic\" " + all + " } }\n");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  const LinkProperties& nvlink = fabric->link(
      fabric->cables()[fabric->FindCable("server0/gpu3--server0/nvswitch0").value()].forward);
  EXPECT_EQ(nvlink.rate_bps, 2'400'000'000'000u);
  EXPECT_EQ(nvlink.propagation_ps, 100'000);
  Load("fabric.textproto",
       "rail_optimized { mixed_servers { count: 1 platform: \"generic\" gpus: 4 } }\n");
  for (const char* field :
       {"nic_rate", "host_rate", "host_delay", "nvlink_rate", "nvlink_delay", "nvswitch_latency"}) {
    EXPECT_THAT(findings_,
                HasSubstr(fmt::format("fabric.textproto:1:18: error: "
                                      "rail_optimized.mixed_servers[0].{}: missing (expected a "
                                      "value: platform \"generic\" leaves it to its user)\n",
                                      field)));
  }
  Load("open.textproto", "gpus { value: 2 source: \"counted\" }\n");
  EXPECT_EQ(
      findings_,
      "open.textproto:1:1: error: leaves nic_rate, host_rate, host_delay to its user (expected a "
      "platform file or a fabric with servers { } that states them)\n");
}

TEST_F(PlatformFileTest, MistakesAreAtTheirFields) {
  Load("mine.textproto",
       "gpus { value: 0 source: \"counted\" }\n"
       "nic_rate { value: \"fast\" source: \"a\" }\n"
       "host_rate { source: \"a\" }\n"
       "host_delay { value: \"2s\" source: \"a\" }\n"
       "nics { value: 1 }\n"
       "nvlink {\n"
       "  nvswitch_lanes { values: [1, 65] source: \"a\" }\n"
       "  lane_rate { value: \"1bps\" source: \"a\" }\n"
       "  delay { source: \"a\" }\n"
       "  nvswitch_latency { value: \"1ns\" source: \"a\" }\n"
       "}\n");
  EXPECT_EQ(findings_,
            "mine.textproto:1:8: error: gpus.value: 0 is out of range (expected 1 to 1024)\n"
            "mine.textproto:2:12: error: nic_rate.value: \"fast\" is not a data rate (expected a "
            "data rate with its unit, e.g. \"400Gbps\")\n"
            "mine.textproto:3:1: error: host_rate.value: missing (expected a data rate with its "
            "unit, e.g. \"400Gbps\")\n"
            "mine.textproto:4:14: error: host_delay.value: 2 s is out of range (expected 0s to "
            "1s)\n"
            "mine.textproto:5:1: error: nics.source: missing (expected where the number is from)\n"
            "mine.textproto:7:32: error: nvlink.nvswitch_lanes.values[1]: 65 is out of range "
            "(expected 1 to 64)\n"
            "mine.textproto:8:15: error: nvlink.lane_rate.value: 1 bps is out of range (expected "
            "1Mbps to 100Tbps)\n"
            "mine.textproto:9:3: error: nvlink.delay.value: missing (expected a duration with its "
            "unit, e.g. \"300ms\")\n");
  Load("mine.textproto", "nvlink { nvswitch_lanes { source: \"a\" } }\n");
  EXPECT_THAT(findings_, HasSubstr("nvlink.nvswitch_lanes.values: 0 NVSwitches are out of range "
                                   "(expected 1 to 64)"));
  Load("mine.textproto", "nvlink { }\n");
  EXPECT_THAT(
      findings_,
      HasSubstr("nvlink.nvswitch_lanes: missing (expected a GPU's NVLinks to each NVSwitch, "
                "e.g. { values: [5, 4, 4, 5] }, or mesh)"));
}

TEST_F(PlatformFileTest, MistakesOfAMeshAreAtTheirFields) {
  Load("mine.textproto",
       "gpus { value: 4 source: \"counted\" }\n"
       "nvlink {\n"
       "  mesh {\n"
       "    bundles { gpu: 1 peer: 0 lanes: 1 }\n"
       "    bundles { gpu: 0 peer: 3 lanes: 65 }\n"
       "    bundles { gpu: 0 peer: 3 lanes: 1 }\n"
       "    bundles { gpu: 1 peer: 4 }\n"
       "  }\n"
       "  nvswitch_latency { value: \"1ns\" source: \"a\" }\n"
       "}\n");
  for (const char* finding :
       {"mine.textproto:9:3: error: nvlink.nvswitch_latency: has no effect beside mesh (expected "
        "one of the two)\n",
        "mine.textproto:3:3: error: nvlink.mesh.source: missing (expected where the number is "
        "from)\n",
        "mine.textproto:4:22: error: nvlink.mesh.bundles[0].peer: 0 is not above gpu, 1 (expected "
        "each pair once, the lower first)\n",
        "mine.textproto:5:30: error: nvlink.mesh.bundles[1].lanes: 65 is out of range (expected 1 "
        "to 64)\n",
        "mine.textproto:6:22: error: nvlink.mesh.bundles[2].peer: 0 and 3 are joined above "
        "(expected each pair once)\n",
        "mine.textproto:7:22: error: nvlink.mesh.bundles[3].peer: 4 is out of range (expected 0 to "
        "3)\n",
        "mine.textproto:7:5: error: nvlink.mesh.bundles[3].lanes: missing (expected a number)\n"}) {
    EXPECT_THAT(findings_, HasSubstr(finding));
  }
  Load("mine.textproto", "nvlink { mesh { source: \"a\" } }\n");
  EXPECT_THAT(findings_,
              HasSubstr("nvlink.mesh.bundles: missing (expected NVLinks of two GPUs, e.g. "
                        "{ gpu: 0 peer: 1 lanes: 2 })"));
}

// Six NVLinks of every GPU (NVIDIA V100 whitepaper), 50 GB/s where there are two.
TEST_F(PlatformFileTest, AMeshLeadsFromGpuToGpu) {
  const FabricGraph fabric = LoneServer(ServerOfPlatform("dgx-1-v100"));
  for (const DeviceId gpu : fabric.gpus()) {
    uint32_t lanes = 0;
    for (const DeviceId peer : fabric.gpus()) {
      for (const auto& path : fabric.NvlinkPaths(gpu, peer)) lanes += path.lanes;
    }
    EXPECT_EQ(lanes, 6u);
  }
  const auto cable = fabric.FindCable("server0/gpu0--server0/gpu3");
  ASSERT_TRUE(cable.has_value());
  EXPECT_EQ(fabric.link(fabric.cables()[*cable].forward).rate_bps, 400'000'000'000u);
  EXPECT_FALSE(fabric.FindCable("server0/gpu0--server0/gpu5").has_value());
  const auto servers = [](const std::string& more) {
    return "rail_optimized { mixed_servers { count: 1 platform: \"dgx-1-v100\" " + more + " } }\n";
  };
  // With four GPUs there are the NVLinks between them.
  const auto quad = Load("fabric.textproto", servers("gpus: 4 nvlink_rate: \"300GBps\""));
  ASSERT_TRUE(quad.has_value()) << findings_;
  EXPECT_FALSE(quad->FindCable("server0/gpu0--server0/gpu4").has_value());
  EXPECT_EQ(
      quad->link(quad->cables()[*quad->FindCable("server0/gpu2--server0/gpu3")].forward).rate_bps,
      2 * 400'000'000'000u);
  Load("fabric.textproto", servers("gpus: 9 nvswitch_latency: \"1ns\""));
  EXPECT_THAT(findings_, HasSubstr("gpus: 9 are more than the platform's NVLinks join (expected at "
                                   "most 8)"));
  EXPECT_THAT(findings_, HasSubstr("nvswitch_latency: has no effect on a platform without "
                                   "NVSwitches (expected another platform)"));
}

TEST_F(PlatformFileTest, FilesThatAreNotThereAndNumbersWithoutEffectAreRefused) {
  Load("fabric.textproto",
       "rail_optimized { mixed_servers { count: 1 platform: \"./none.textproto\" } }\n");
  EXPECT_THAT(findings_, HasSubstr("fabric.textproto:1:43: error: "
                                   "rail_optimized.mixed_servers[0].platform: "));
  EXPECT_THAT(findings_, HasSubstr("none.textproto\": there is no such file"));
  Load("fabric.textproto",
       "rail_optimized { mixed_servers { count: 1 platform: \"single-gpu\" nvlink_delay: \"1ns\" "
       "nvswitch_latency: \"1ns\" } }\n");
  for (const char* field : {"nvlink_delay", "nvswitch_latency"}) {
    EXPECT_THAT(findings_, HasSubstr(fmt::format("{}: has no effect on a platform without NVLink "
                                                 "(expected another platform)",
                                                 field)));
  }
  Diagnostics diagnostics;
  EXPECT_FALSE(LoadPlatform("/none/at.all", diagnostics).has_value());
  EXPECT_THAT(diagnostics.ToString(),
              HasSubstr("there is no such file (expected a platform file)"));
}

}  // namespace
}  // namespace railyard
