// SPDX-License-Identifier: GPL-2.0-only
// Servers without NVLink: GPUs that talk over PCIe, or through the memory of their hosts.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBytes = 64 << 20;

class PcieTest : public ProgramTest {
 protected:
  EndedRun RunOn(const std::string& platform, uint32_t servers, const std::string& more = "",
                 const std::string& kind = "ALL_REDUCE") {
    return RunText(fmt::format("fabric {{ rail_optimized {{ mixed_servers {{ count: {} platform: "
                               "\"{}\" }} }} }}\n"
                               "workload {{ program {{ collectives {{ kind: {} bytes: \"64MiB\" }} "
                               "}} {} }}\n",
                               servers, platform, kind,
                               kind == "ALL_REDUCE" ? "algorithm: RING protocol: SIMPLE" : "") +
                   more);
  }
};

// Every hop of a ring carries 2 (n - 1) / n of the bytes. SHM: from a GPU to its host bridge are
// two links, to the other socket's three, and two from there to the next GPU. Six hops stay on a
// socket.
TEST_F(PcieTest, ThroughHostMemoryEveryByteCrossesTheTreeTwice) {
  const EndedRun run = RunOn("pcie-8x3090", 1, kFreeGpu);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.OfTier("HOST", "payload_bytes"), (6 * 4 + 2 * 5) * kBytes * 14 / 8);
  // Four GPUs store by one link of PCIe 4.0 x16, and 24 bytes ask for each 512 that they load.
  const double uplink_ps =
      4 * 1.75 * static_cast<double>(kBytes) * (1 + 24.0 / 512) / 27.5e9 * 1e12;
  EXPECT_GE(static_cast<double>(run.Integer("simulated_time_ps")), uplink_ps);
  EXPECT_LE(static_cast<double>(run.Integer("simulated_time_ps")), 1.15 * uplink_ps);
}

// P2P: one link to the switch and one from it. Between sockets SHM, or with NCCL_P2P_LEVEL=SYS
// straight, five links both.
TEST_F(PcieTest, PeerToPeerCrossesASwitchOnce) {
  constexpr int64_t kPerHop = kBytes * 14 / 8;
  const EndedRun run = RunOn("pcie-8xa100", 1, kFreeGpu);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.OfTier("HOST", "payload_bytes"), (6 * 2 + 2 * 5) * kPerHop);
  // One GPU's link, one hop's bytes.
  const double link_ps = static_cast<double>(kPerHop) / 27.5e9 * 1e12;
  EXPECT_GE(static_cast<double>(run.Integer("simulated_time_ps")), link_ps);
  EXPECT_LE(static_cast<double>(run.Integer("simulated_time_ps")), 1.25 * link_ps);
  const EndedRun straight =
      RunOn("pcie-8xa100", 1, std::string(kFreeGpu) + "nccl { P2P_LEVEL: \"SYS\" }\n");
  EXPECT_EQ(straight.OfTier("HOST", "payload_bytes"), (6 * 2 + 2 * 5) * kPerHop);
  EXPECT_NE(straight.Text("fingerprint"), run.Text("fingerprint"));
  const EndedRun disabled =
      RunOn("pcie-8xa100", 1, std::string(kFreeGpu) + "nccl { P2P_DISABLE: true }\n");
  EXPECT_EQ(disabled.OfTier("HOST", "payload_bytes"), (6 * 4 + 2 * 5) * kPerHop);
}

// A ring leaves each server once, over two cables.
TEST_F(PcieTest, RingsOverServersLeaveByTheSharedNic) {
  const EndedRun run = RunOn("pcie-8x3090", 2);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.OfTier("NIC_LEAF", "payload_bytes"), int64_t{2} * 2 * kBytes * 2 * 15 / 16);
}

// A server's seven eighths, which four to a socket store and load.
TEST_F(PcieTest, SendsGoThroughHostMemoryToo) {
  const EndedRun run = RunOn("pcie-8x3090", 1, "", "ALL_TO_ALL");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  // A GPU has an eighth for each other: three on its socket, four on the other one.
  EXPECT_EQ(run.OfTier("HOST", "payload_bytes"), int64_t{8} * (3 * 4 + 4 * 5) * kBytes / 8);
}

TEST_F(PcieTest, TreesReduceFromHostMemory) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { mixed_servers { count: 2 platform: \"pcie-8x3090\" } } }\n"
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } algorithm: TREE "
      "protocol: LL }\n");
  EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
}

TEST_F(PcieTest, ALostPcieLinkEndsTheJob) {
  const EndedRun run =
      RunOn("pcie-8x3090", 1, LinkDown("server0/pcieswitch0--server0/hostbridge0", "1ms"));
  EXPECT_EQ(run.exit.status, 3);
  EXPECT_THAT(run.exit.output + run.exit.errors, HasSubstr("fallen off the bus (Xid 79)"));
}

TEST_F(PcieTest, AServerWithoutAWayInsideIsSaid) {
  const EndedRun run = RunOn("pcie-8x3090", 1, "nccl { SHM_DISABLE: true }\n");
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_THAT(run.exit.errors,
              HasSubstr(":1:10: error: fabric.rail_optimized: nccl.P2P_LEVEL, P2P_DISABLE and "
                        "SHM_DISABLE leave server0/gpu0 and server0/gpu1 no way in their server, "
                        "and communicator \"world\" needs one (expected nccl.SHM_DISABLE: false; "
                        "NCCL's detour over NICs is not modelled)"));
  const EndedRun h100 = RunOn("dgx-h100", 1, "nccl { P2P_DISABLE: true }\n");
  EXPECT_EQ(h100.exit.status, 2);
  EXPECT_THAT(h100.exit.errors, HasSubstr("(expected nccl.P2P_DISABLE: false, or a platform with "
                                          "PCIe between GPUs)"));
  const EndedRun level = RunOn("pcie-8x3090", 1, "nccl { P2P_LEVEL: \"PXN\" P2P_DISABLE: true }\n");
  EXPECT_THAT(level.exit.errors, HasSubstr("nccl.P2P_LEVEL: \"PXN\" is no distance (expected LOC, "
                                           "NVL, PIX, PXB, PHB or SYS)"));
}

// Two channels of 8 RTX 3090 share an uplink of 27.5 GB/s by fours: 6.6 GB/s with the read
// requests.
TEST_F(PcieTest, PerfPrintsWhatTheUplinksCarry) {
  const ProgramExit run = Railyard({"perf", "--collective", "all_reduce", "--fabric", "pcie-8x3090",
                                    "-b", "128M", "-e", "128M", "-J", "-"});
  ASSERT_EQ(run.status, 0) << run.errors;
  rapidjson::Document json;
  json.Parse(run.output.c_str());
  ASSERT_FALSE(json.HasParseError()) << run.output;
  const double bound = 27.5 / 4 / (1 + 24.0 / 512);
  const double busbw = json["results"][0]["out_of_place"]["bus_bw"].GetDouble();
  EXPECT_LE(busbw, bound);
  EXPECT_GE(busbw, 0.9 * bound);
  EXPECT_STREQ(json["results"][0]["replayed"].GetString(), "RING/SIMPLE");
}

}  // namespace
}  // namespace railyard::testing
