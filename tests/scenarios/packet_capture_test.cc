// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/packet_capture.h"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/run/run_scenario.h"
#include "tests/run/program.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CaptureFileNamesTest, AreThoseOfLinksAsFilesMayBeNamed) {
  EXPECT_THAT(CaptureFileNames({"server1/nic3--leaf3", "server1/nic3>leaf3", "leaf3--spine0#1"}),
              ElementsAre("server1_nic3--leaf3.pcapng", "server1_nic3_leaf3.pcapng",
                          "leaf3--spine0#1.pcapng"));
  EXPECT_THAT(
      CaptureFileNames({"../../x--y", "a b--c", "a/b--c", "a_b--c"}),
      ElementsAre("_._.._x--y.pcapng", "a_b--c.pcapng", "a_b--c-2.pcapng", "a_b--c-3.pcapng"));
  EXPECT_LT(CaptureFileNames({std::string(1'000, 'x')}).front().size(), 255u);
}

// 64 MiB are 16,384 packets of 4 KiB. At most 96 B of each are captured, and a block's 32 B are
// around them. A few frames that wait for their turn when the budget is used up are written still.
TEST(PacketCaptureTest, KeepsToItsBudgetAndSaysSo) {
  LoadedScenario loaded(
      "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
      "workload { program { collectives { kind: BROADCAST bytes: \"64MiB\" } } }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const ScratchDirectory scratch;
  constexpr uint64_t kBytesMax = 1u << 20;
  const std::string name = "server0/nic0>leaf0";
  const LinkCapture capture = {
      .name = name, .file = scratch.Path("x.pcapng"), .snap_bytes = 96, .bytes_max = kBytesMax};
  const RunResult result = RunScenario(*loaded.scenario, {.captures = {capture}});
  const uint64_t size = std::filesystem::file_size(capture.file);
  EXPECT_GT(size, kBytesMax - 256);
  EXPECT_LT(size, kBytesMax + 16 * 128);
  ASSERT_THAT(result.notes, Contains(HasSubstr("Capture of " + name)));
  const std::string note = *std::ranges::find_if(
      result.notes, [](const std::string& text) { return text.starts_with("Capture of "); });
  std::smatch counts;
  ASSERT_TRUE(std::regex_search(
      note, counts,
      std::regex("the first (\\d+) packets; (\\d+) more are left out, to keep to 1 MiB\\.")))
      << note;
  const uint64_t captured = std::stoull(counts[1]);
  const uint64_t left_out = std::stoull(counts[2]);
  EXPECT_GE(captured, kBytesMax / 128 - 2);  // headers of the file take less than two packets
  const auto link = std::ranges::find(result.links, name, &LinkResult::name);
  ASSERT_NE(link, result.links.end());
  EXPECT_GT(link->packets, 16'384u);
  EXPECT_EQ(captured + left_out, link->packets);
}

}  // namespace
}  // namespace railyard::testing
