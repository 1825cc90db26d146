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

// Launches take twice as long on a calibrated platform: in a run, and in a comparison's row.
TEST_F(TopoTest, ComparisonsKeepThePlatformsCalibration) {
  const std::string platform = scratch_.Write(
      "mine.textproto",
      ReadText(std::string(RAILYARD_SOURCE_DIR) + "/topologies/platforms/dgx-h100.textproto") +
          "\ncalibration { launch_latency_scale: 2 step_latency_scale: 1 "
          "channel_rate_scale: 1 median_abs_error_before: 0.2 "
          "median_abs_error_after: 0.1 median_abs_error_left_out: 0.1 "
          "source: \"made up\" }\n");
  const std::string program = Program("ALL_REDUCE", "64KiB");
  const std::string fabric =
      "fabric { fat_tree { servers { platform: \"" + platform + "\" count: 1 } } }\n";
  const std::string calibrated = scratch_.Write("c.textproto", fabric + program);
  const std::string workload =
      scratch_.Write("w.textproto", "fabric { preset: \"h100-1x8\" }\n" + program);
  const std::string json = scratch_.Path("rows.json");
  const ProgramExit exit = Railyard({"topo", "compare", calibrated, platform, "dgx-h100",
                                     "--workload", workload, "--json", json});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  rapidjson::Document rows;
  rows.Parse(ReadText(json).c_str());
  const auto time = [&](unsigned row) { return rows[row]["simulated_time_ps"].GetInt64(); };
  EXPECT_EQ(time(0), RunText(fabric + program).Integer("simulated_time_ps"));
  EXPECT_EQ(time(1), time(0));
  EXPECT_GT(time(1), time(2));
  const std::string both = scratch_.Write(
      "b.textproto",
      "fabric { preset: \"h100-1x8\" }\ngpu { launch_latency_scale: 3 }\n" + program);
  const ProgramExit refused =
      Railyard({"topo", "compare", platform, "dgx-h100", "--workload", both});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors, HasSubstr("stands beside the calibration of the platform"));
  const ProgramExit shown =
      Railyard({"topo", "show", platform, "--text", scratch_.Path("f.textproto")});
  EXPECT_THAT(shown.errors, HasSubstr("calibration: is not in the files written"));
}

TEST_F(TopoTest, PricesThatArePartlyUnknownAreNotCounted) {
  const std::string prices = scratch_.Write("p.textproto", "name: \"mine\"\ncurrency: \"USD\"\n");
  const std::string workload = scratch_.Write(
      "w.textproto", "fabric { preset: \"h100-1x8\" }\n" + Program("ALL_REDUCE", "64KiB"));
  const ProgramExit exit = Railyard({"topo", "compare", "h100-1x8", "h100-2x8-rail-optimized",
                                     "--workload", workload, "--prices", prices});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("not counted"));
}

// Servers whose only cable is there in all configurations but one.
TEST_F(TopoTest, EveryConfigurationMustConnectAllGpus) {
  std::string devices;
  for (const char* server : {"0", "1"}) {
    devices += std::string("devices { name: \"g") + server + "\" kind: GPU server: " + server +
               " local_index: 0 }\ndevices { name: \"n" + server +
               "\" kind: NIC server: " + server + " local_index: 0 }\ndevices { name: \"s" +
               server + "\" kind: SWITCH }\n" + "links { from: \"g" + server + "\" to: \"n" +
               server + "\" tier: HOST rate: \"440Gbps\" delay: \"450ns\" }\nlinks { from: \"n" +
               server + "\" to: \"s" + server +
               "\" tier: NIC_LEAF rate: \"400Gbps\" delay: \"270ns\" }\n";
  }
  for (const int parted : {1, 37, 99}) {
    std::string slots;
    for (int slot = 0; slot < 100; ++slot) {
      if (slot != parted) slots += (slots.empty() ? "" : ".") + std::to_string(slot);
    }
    const std::string fabric = scratch_.Write(
        "f.textproto", devices +
                           "links { from: \"s0\" to: \"s1\" tier: DIRECT rate: \"400Gbps\" "
                           "delay: \"270ns\" slots: \"" +
                           slots +
                           "\" }\ncircuit_slots: 100 slot_duration: \"100us\" dark_time: \"1us\" "
                           "drain_time: \"10us\" routing: SHORTEST\n"
                           "deadlock_avoidance: HOP_CLASSES\n");
    const ProgramExit exit = Railyard({"topo", "show", fabric});
    EXPECT_EQ(exit.status, 2) << exit.errors;
    EXPECT_THAT(exit.output, HasSubstr("in configuration " + std::to_string(parted) + " of 100"));
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
  // The rate of NICs follows from their cables, which the server alone does not have.
  const ProgramExit again = Railyard({"topo", "show", nccl, "--nccl", scratch_.Path("g.xml")});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.errors, HasSubstr("has no cable to the network, so its rate is not known"));
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
