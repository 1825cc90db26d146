// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/measures/preflight.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/generators/leaf_spine.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/generators/torus.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> Lines(const FabricGraph& fabric) {
  std::vector<std::string> lines;
  for (const PreflightFinding& finding : Preflight(fabric, Measure(fabric))) {
    lines.push_back(std::string(PreflightSeverityName(finding.severity)) + ": " + finding.code +
                    ": " + finding.what);
  }
  return lines;
}

// Two servers of two GPUs on one island each, a NIC each, one leaf.
class SmallFabric {
 public:
  explicit SmallFabric(bool is_cabled = true) {
    for (int server = 0; server < 2; ++server) {
      const auto add = [&](const char* noun, DeviceKind kind, int index) {
        return graph.AddDevice({.name = fmt::format("s{}/{}{}", server, noun, index),
                                .kind = kind,
                                .server = ServerIndex{server},
                                .local_index = index});
      };
      const DeviceId island = add("nvswitch", DeviceKind::kNvSwitch, 0);
      for (int i = 0; i < 2; ++i) {
        const DeviceId gpu = add("gpu", DeviceKind::kGpu, i);
        graph.AddCable(gpu, island, {.tier = Tier::kNvlink, .rate_bps = 100});
        nics.push_back(add("nic", DeviceKind::kNic, i));
        graph.AddCable(gpu, nics.back(), {.tier = Tier::kHost, .rate_bps = 100});
      }
    }
    leaf = graph.AddDevice({.name = "leaf"});
    if (!is_cabled) return;
    for (const DeviceId nic : nics) Cable(nic, 100);
  }
  void Cable(DeviceId nic, uint64_t rate_bps) {
    graph.AddCable(nic, leaf, {.tier = Tier::kNicLeaf, .rate_bps = rate_bps});
  }
  FabricGraph graph;
  std::vector<DeviceId> nics;
  DeviceId leaf{0};
};

TEST(PreflightTest, ANonBlockingRailOptimizedFabricHasNothingToReport) {
  EXPECT_THAT(Lines(MakeRailOptimized({.servers = 4})), IsEmpty());
}

TEST(PreflightTest, RailOnlyPassesForItsGpusReachEachOtherOverNvlink) {
  EXPECT_THAT(Lines(MakeRailOptimized({.servers = 4, .spines = 0})),
              ElementsAre("info: RELAYED_PAIRS: NICs of different rails or planes are not joined: "
                          "what crosses them takes NVLink inside a server (NCCL: CROSS_NIC=0 and "
                          "PXN)"));
}

TEST(PreflightTest, NoPresetHasAnError) {
  for (const Preset& preset : Presets()) {
    const FabricGraph fabric = *MakePreset(preset.name);
    for (const std::string& line : Lines(fabric)) {
      EXPECT_THAT(line, ::testing::Not(StartsWith("error"))) << preset.name;
    }
  }
}

TEST(PreflightTest, GpusThatNothingJoinsAreUnreachable) {
  EXPECT_THAT(Lines(SmallFabric(false).graph),
              ElementsAre("error: UNREACHABLE: the GPUs fall into 2 parts that nothing joins; "
                          "s0/gpu0 does not reach s1/gpu0",
                          "warning: MISSING_RAIL: NICs without a cable to the network: s0/nic0, "
                          "s0/nic1, s1/nic0, s1/nic1",
                          "warning: SINGLE_POINT_OF_FAILURE: devices of kind NVSWITCH whose loss "
                          "parts GPUs: 2: s0/nvswitch0, s1/nvswitch0",
                          ::testing::StartsWith("info: RELAYED_PAIRS")));
}

TEST(PreflightTest, AServerWithoutARailThatItsLikeHaveIsNamed) {
  SmallFabric small(false);
  for (const int nic : {0, 1, 2}) small.Cable(small.nics[static_cast<size_t>(nic)], 100);
  EXPECT_THAT(Lines(small.graph),
              ::testing::Contains("warning: MISSING_RAIL: servers lack a rail that others with as "
                                  "many GPUs have: server1 rail 1"));
}

DeviceId AddDevice(FabricGraph& graph, std::string name, DeviceKind kind, int32_t local_index) {
  Device device;
  device.name = std::move(name);
  device.kind = kind;
  device.server = ServerIndex{0};
  device.local_index = local_index;
  return graph.AddDevice(std::move(device));
}

// Three GPUs, of which every two share an NVSwitch and all three none.
TEST(PreflightTest, AServerWhoseGpusShareNoNvSwitchIsNamed) {
  const auto warned = ::testing::Contains(
      "warning: NO_COMMON_NVSWITCH: no NVSwitch is cabled to all GPUs of its "
      "server, and NVLS needs one (nccl.NVLS_ENABLE: false runs without): "
      "server0");
  FabricGraph graph;
  std::vector<DeviceId> gpus;
  std::vector<DeviceId> nvswitches;
  for (int i = 0; i < 3; ++i) {
    gpus.push_back(AddDevice(graph, fmt::format("s0/gpu{}", i), DeviceKind::kGpu, i));
    nvswitches.push_back(AddDevice(graph, fmt::format("s0/sw{}", i), DeviceKind::kNvSwitch, i));
  }
  const auto cable = [&](size_t gpu, size_t nvswitch) {
    graph.AddCable(gpus[gpu], nvswitches[nvswitch],
                   {.tier = Tier::kNvlink, .rate_bps = 400'000'000'000});
  };
  for (size_t i = 0; i < 3; ++i) {
    cable(i, i);
    cable(i, (i + 1) % 3);
  }
  EXPECT_THAT(Lines(graph), warned);
  cable(0, 2);
  EXPECT_THAT(Lines(graph), ::testing::Not(warned)) << "all on sw2";
}

TEST(PreflightTest, ABundleOfUnequalCablesIsNamed) {
  SmallFabric small;
  small.Cable(small.nics[3], 200);
  EXPECT_THAT(Lines(small.graph),
              ::testing::Contains("warning: UNEQUAL_BUNDLE: parallel cables of different rates, "
                                  "over which ECMP spreads evenly: s1/nic1--leaf"));
}

TEST(PreflightTest, TheOnlyLeafIsASinglePointOfFailure) {
  EXPECT_THAT(Lines(SmallFabric().graph),
              ElementsAre("warning: SINGLE_POINT_OF_FAILURE: devices of kind SWITCH whose loss "
                          "parts GPUs: 1: leaf"));
}

TEST(PreflightTest, OversubscriptionIsAWarningWithItsRatio) {
  EXPECT_THAT(Lines(MakeRailOptimized({.servers = 4, .spines = 1})),
              ElementsAre("warning: OVERSUBSCRIBED: leaf0 takes 4 times as much from NIC_LEAF as "
                          "it passes on to LEAF_SPINE"));
}

TEST(PreflightTest, ADeadlockNamesTheCycle) {
  FabricGraph torus = MakeTorus(
      {.network = {.servers = {{.count = 4, .gpus = 1, .nvlink_lanes = {}}}}, .dimensions = {4}});
  torus.deadlock_avoidance = DeadlockAvoidance::kRoutes;
  EXPECT_THAT(Lines(torus).front(),
              ::testing::MatchesRegex("error: PFC_DEADLOCK: pauses can wait for each other in a "
                                      "circle: router.>router. > router.>router. > "
                                      "router.>router. > router.>router. > router.>router."));
}

TEST(PreflightTest, MoreHopClassesThanPfcHasAreAnError) {
  FabricGraph torus = MakeTorus(
      {.network = {.servers = {{.count = 20, .gpus = 1, .nvlink_lanes = {}}}}, .dimensions = {20}});
  torus.deadlock_avoidance = DeadlockAvoidance::kHopClasses;
  EXPECT_EQ(Lines(torus).front(),
            "error: PFC_DEADLOCK: routes of 10 hops need as many lossless classes, and PFC has 8");
}

}  // namespace
}  // namespace railyard
