// SPDX-License-Identifier: GPL-2.0-only
// A server of four GPUs, each cabled to each, without an NVSwitch; and whole platforms.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class MeshTest : public ProgramTest {
 protected:
  MeshTest() {
    std::string mesh;
    for (int gpu = 0; gpu < 4; ++gpu) {
      mesh +=
          fmt::format("devices {{ name: \"gpu{0}\" kind: GPU server: 0 local_index: {0} }}\n", gpu);
      for (int other = 0; other < gpu; ++other) {
        mesh += fmt::format(
            "links {{ from: \"gpu{}\" to: \"gpu{}\" tier: NVLINK rate: \"50GBps\" delay: \"200ns\" "
            "}}\n",
            other, gpu);
      }
    }
    scratch_.Write("mesh.textproto", mesh);
  }
  EndedRun RunOnMesh(const std::string& kind, const std::string& bytes) {
    return RunText("fabric { file: \"mesh.textproto\" }\n" + Program(kind, bytes) + kFreeGpu);
  }
};

// Each GPU sends a quarter to each other over a cable of its own, all at once: a quarter's packets,
// 0.824 of them payload (NCCL's 20.6 of 25 GB/s), and one cable.
TEST_F(MeshTest, AllToAllTakesTheTimeOfOneCable) {
  const EndedRun run = RunOnMesh("ALL_TO_ALL", "64MiB");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const double serialisation_ps = (64.0 * 1024 * 1024 / 4) / 0.824 / 50e9 * 1e12;
  EXPECT_GE(static_cast<double>(run.Integer("simulated_time_ps")), serialisation_ps + 200'000);
  EXPECT_LE(static_cast<double>(run.Integer("simulated_time_ps")), 1.03 * serialisation_ps);
  EXPECT_EQ(run.OfTier("NVLINK", "payload_bytes"), 12 * (16 << 20));
}

// Three cables of a GPU are one ring, which takes two of them, in both directions: two thirds of
// the cables, and half of the data each way.
TEST_F(MeshTest, RingsUseTwoCablesOfEachGpuBothWays) {
  const EndedRun run = RunOnMesh("ALL_REDUCE", "64MiB");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  int64_t used = 0;
  for (size_t row = 0; row < run.links.size(); ++row) {
    used += run.links.Integer(row, "payload_bytes") > 0 ? 1 : 0;
  }
  EXPECT_EQ(used, 8);
  const double serialisation_ps = 1.5 / 2 * 64 * 1024 * 1024 / 0.824 / 50e9 * 1e12;
  EXPECT_GE(static_cast<double>(run.Integer("simulated_time_ps")), serialisation_ps);
  EXPECT_LE(static_cast<double>(run.Integer("simulated_time_ps")), 1.05 * serialisation_ps);
}

class PlatformRunTest : public ProgramTest {};

std::string ServersOf(const std::string& platform, uint32_t count) {
  return fmt::format(
      "fabric {{ rail_optimized {{ mixed_servers {{ count: {} platform: \"{}\" }} }} }}\n", count,
      platform);
}

// RCCL's fourteen rings use all seven links of each GPU alike: 2 x 7/8 of the data at 7 x 48 GB/s.
TEST_F(PlatformRunTest, AnAllReduceOnMi300xIsBoundByXgmi) {
  const EndedRun run = RunText(ServersOf("mi300x", 1) + Program("ALL_REDUCE", "256MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const double bound_ps = 256.0 * 1024 * 1024 * 1.75 / (7 * 48e9) * 1e12;
  EXPECT_GE(static_cast<double>(run.Integer("simulated_time_ps")), bound_ps);
  EXPECT_LE(static_cast<double>(run.Integer("simulated_time_ps")), 1.15 * bound_ps);
}

// Kinds of machines of which no table was at hand, one and two servers of each.
TEST_F(PlatformRunTest, MachinesWithoutTablesRun) {
  for (const char* platform : {"gh200", "h20", "dgx-b300", "gb300-nvl72", "mi300x"}) {
    for (const uint32_t servers : {1u, 2u}) {
      for (const char* kind : {"ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL"}) {
        const EndedRun run = RunText(ServersOf(platform, servers) + Program(kind, "1152KiB"));
        EXPECT_EQ(run.exit.status, 0) << platform << " " << servers << run.exit.errors;
      }
    }
  }
}

}  // namespace
}  // namespace railyard::testing
