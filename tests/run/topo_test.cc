// SPDX-License-Identifier: GPL-2.0-only
// Whole runs over optical circuits and other new fabrics, and what `railyard topo show` writes.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TopoTest : public ProgramTest {
 protected:
  std::string Optical(const std::string& times) const {
    return "fabric { optical { servers { count: 8 } circuit_switches: 6 " + times +
           " } }\nnccl { IB_TIMEOUT: 6 }\n";
  }
};

// Slots of 100 us: an AllToAll of a millisecond goes through ten configurations.
TEST_F(TopoTest, AJobGoesOnWhileCircuitsTurn) {
  const EndedRun run = RunText(Optical("drain_time: \"40us\"") + Program("ALL_TO_ALL", "8MiB"));
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  EXPECT_GT(run.Integer("simulated_time_ps"), 300'000'000);
}

TEST_F(TopoTest, WithoutTimeToDrainPacketsAreLostWithTheirCircuits) {
  const EndedRun drained = RunText(Optical("drain_time: \"60us\"") + Program("ALL_TO_ALL", "8MiB"));
  const EndedRun cut = RunText(Optical("drain_time: \"0us\"") + Program("ALL_TO_ALL", "8MiB"));
  EXPECT_EQ(drained.Text("status"), "COMPLETED");
  EXPECT_EQ(cut.Text("status"), "COMPLETED");
  EXPECT_GT(cut.Drops()["LINK_DOWN"], drained.Drops()["LINK_DOWN"]);
}

TEST_F(TopoTest, TheSameRunTwiceIsTheSame) {
  const std::string text = Optical("drain_time: \"0us\"") + Program("ALL_TO_ALL", "4MiB");
  EXPECT_EQ(RunText(text).Text("fingerprint"), RunText(text).Text("fingerprint"));
}

TEST_F(TopoTest, ACircuitCannotFailBesides) {
  const std::string scenario = scratch_.Write(
      "s.textproto", Optical("") + Program("ALL_TO_ALL", "1MiB") +
                         "faults { kind: LINK_DOWN link: \"tor0--tor1\" at: \"1us\" }\n");
  const ProgramExit exit = Railyard({"run", scenario});
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("tor0--tor1\" is an optical circuit"));
}

// One scenario's fault on fabrics whose switches have other names.
TEST_F(TopoTest, AFaultOfANicIsTheSameOnEveryFabric) {
  const std::string scenario = scratch_.Write(
      "s.textproto", "fabric { preset: \"h100-2x8-rail-optimized\" }\nnccl { IB_TIMEOUT: 8 }\n" +
                         Program("ALL_REDUCE", "16MiB") +
                         "faults { kind: LINK_DOWN link: \"server1/nic3\" at: \"20us\" until: "
                         "\"60us\" }\n");
  const std::string json = scratch_.Path("table.json");
  const std::string leaf_spine =
      scratch_.Write("l.textproto", "leaf_spine { servers { count: 2 } nics_per_leaf: 8 }");
  const ProgramExit exit = Railyard({"topo", "compare", "h100-2x8-rail-optimized", leaf_spine,
                                     "--workload", scenario, "--json", json});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  rapidjson::Document rows;
  rows.Parse(ReadText(json).c_str());
  for (const auto& row : rows.GetArray()) {
    EXPECT_STREQ(row["status"].GetString(), "COMPLETED");
    EXPECT_GT(row["stretch_max"].GetDouble(), 1.1);
    EXPECT_GT(row["network_cost"].GetDouble(), 0);
    EXPECT_GT(row["network_watts"].GetDouble(), 0);
  }
}

TEST_F(TopoTest, ShowWritesFilesThatShowReads) {
  const std::string ns3 = scratch_.Path("f.txt");
  const std::string nccl = scratch_.Path("f.xml");
  ASSERT_EQ(Railyard({"topo", "show", "h100-4x8-rail-only", "--ns3", ns3, "--nccl", nccl}).status,
            0);
  const ProgramExit fabric = Railyard({"topo", "show", ns3});
  EXPECT_EQ(fabric.status, 0);
  EXPECT_THAT(fabric.output, HasSubstr("32 GPUs in 4 servers, 16 NVSwitches, 32 NICs, 8 switches"));
  const ProgramExit server = Railyard({"topo", "show", nccl});
  EXPECT_EQ(server.status, 0);
  EXPECT_THAT(server.output, HasSubstr("8 GPUs in 1 server"));
}

TEST_F(TopoTest, APictureHasEveryDeviceAndCableInLayers) {
  const std::string path = scratch_.Path("p.json");
  ASSERT_EQ(Railyard({"topo", "show", "h100-128x8-rail-optimized", "--picture", path}).status, 0);
  rapidjson::Document picture;
  picture.Parse(ReadText(path).c_str());
  // 1,024 GPUs and NICs, 512 NVSwitches, 32 leaves, 16 spines.
  ASSERT_EQ(picture["nodes"].Size(), 2u * 1'024 + 512 + 48);
  int64_t cables = 0;
  int64_t spine_links = 0;
  for (const auto& link : picture["links"].GetArray()) {
    cables += link["cables"].GetInt64();
    spine_links += std::string(link["tier"].GetString()) == "LEAF_SPINE" ? 1 : 0;
    const auto layer = [&](const char* end) {
      return picture["nodes"][link[end].GetUint()]["layer"].GetInt();
    };
    EXPECT_EQ(std::abs(layer("source") - layer("target")), 1);
  }
  EXPECT_EQ(cables, 4 * 1'024 + 3 * 1'024);
  EXPECT_EQ(spine_links, 32 * 16) << "two cables each";
}

TEST_F(TopoTest, ShowAnswersWhatServersCanSendAndWhatItCosts) {
  const std::string prices = scratch_.Write(
      "p.textproto",
      "currency: \"EUR\" cable { rate: \"400Gbps\" cost: 100 cost_source: \"an offer\" }");
  const ProgramExit exit = Railyard({"topo", "show", "h100-4x8-rail-optimized", "--prices", prices,
                                     "--flow-from", "0-1", "--flow-to", "3"});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("Maximum flow from servers 0-1 to 3: 400 GB/s"));
  EXPECT_THAT(exit.output, HasSubstr("Network at the prices of p: 6,400 EUR"));
  for (const char* servers : {"4", "1-0", "0,,1", "", "x"}) {
    const ProgramExit wrong = Railyard(
        {"topo", "show", "h100-4x8-rail-optimized", "--flow-from", servers, "--flow-to", "3"});
    EXPECT_EQ(wrong.status, 2) << servers;
  }
  const ProgramExit both =
      Railyard({"topo", "show", "h100-4x8-rail-optimized", "--flow-from", "0-3", "--flow-to", "3"});
  EXPECT_THAT(both.errors, HasSubstr("server 3 is in --flow-from as well"));
}

}  // namespace
}  // namespace railyard::testing
