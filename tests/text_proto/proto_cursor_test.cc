// SPDX-License-Identifier: GPL-2.0-only
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/text_proto/text_file.h"

namespace railyard {
namespace {

TEST(ProtoCursorTest, FindingsPointAtTheFieldOrElseAtItsMessage) {
  TextFile file("seed: 1\nfaults {\n  at: \"1ms\"\n}\n");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr);
  const ProtoCursor fault = ProtoCursor(*loaded).Child("faults", 0);
  Diagnostics diagnostics;
  fault.Error(diagnostics, "at", "too early");
  fault.Warning(diagnostics, "link", "no link");
  fault.Missing(diagnostics, "kind", "LINK_DOWN");
  EXPECT_EQ(file.WithoutPath(diagnostics.ToString()),
            ":2:1: warning: faults[0].link: no link\n"
            ":2:1: error: faults[0].kind: missing (expected LINK_DOWN)\n"
            ":3:3: error: faults[0].at: too early\n");
}

TEST(ProtoCursorTest, FindingsPointAtTheSetAFieldOrItsMessageCameFrom) {
  TextFile file("seed: 1\n");
  const auto loaded = file.Load({"faults[0].at=1ms"});
  ASSERT_NE(loaded, nullptr);
  Diagnostics diagnostics;
  ProtoCursor(*loaded).Child("faults", 0).Missing(diagnostics, "kind", "LINK_DOWN");
  EXPECT_EQ(diagnostics.ToString(),
            "--set faults[0].at=1ms: error: faults[0].kind: missing (expected LINK_DOWN)\n");
}

TEST(ProtoCursorTest, QuantitiesAreReadWithTheirUnits) {
  TextFile file(
      "gpu { launch_latency: \"4us\" channel_rate: \"20GBps\" }\nnic { window: \"1MiB\" }");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr);
  const ProtoCursor cursor(*loaded);
  Diagnostics diagnostics;
  const ProtoCursor gpu = cursor.Child("gpu");
  EXPECT_EQ(gpu.DurationPs(diagnostics, "launch_latency", 1), 4 * kPsPerUs);
  EXPECT_EQ(gpu.DurationPs(diagnostics, "nvlink_step_latency", 17), 17);
  EXPECT_EQ(gpu.RateBps(diagnostics, "channel_rate", 1), 160'000'000'000u);
  EXPECT_EQ(cursor.Child("nic").Bytes(diagnostics, "window", 1), 1u << 20);
  EXPECT_FALSE(diagnostics.HasErrors());
}

TEST(ProtoCursorTest, QuantitiesWithTheWrongUnitAreRefused) {
  TextFile file(
      "gpu { launch_latency: \"4 potatoes\"\n channel_rate: \"4s\" }\nnic { window: \"4Gbps\"\n "
      "mtu_bytes: 9000 }");
  const auto loaded = file.Load();
  ASSERT_NE(loaded, nullptr);
  const ProtoCursor cursor(*loaded);
  Diagnostics diagnostics;
  EXPECT_EQ(cursor.Child("gpu").DurationPs(diagnostics, "launch_latency", 5), 5);
  EXPECT_EQ(cursor.Child("gpu").RateBps(diagnostics, "channel_rate", 6), 6u);
  EXPECT_EQ(cursor.Child("nic").Bytes(diagnostics, "window", 7), 7u);
  EXPECT_EQ(cursor.Child("nic").Number(diagnostics, "mtu_bytes", 8, 256, 4096), 8u);
  EXPECT_EQ(
      file.WithoutPath(diagnostics.ToString()),
      ":1:7: error: gpu.launch_latency: \"4 potatoes\" has an unknown unit (expected ps, ns, "
      "us, ms, s, min or h)\n"
      ":2:2: error: gpu.channel_rate: \"4s\" has an unknown unit (expected bps, Kbps, Mbps, Gbps "
      "or Tbps, or for bytes Bps to TBps)\n"
      ":3:7: error: nic.window: \"4Gbps\" has an unknown unit (expected B, KiB, MiB, GiB, TiB or "
      "PiB)\n"
      ":4:2: error: nic.mtu_bytes: 9000 is out of range (expected 256 to 4096)\n");
}

TEST(ProtoCursorTest, PathsAreRelativeToWhereTheyWereWritten) {
  TextFile file("workload { nccl_log { files: \"a/b.log\" files: \"/abs.log\" } }");
  const auto loaded = file.Load({"workload.nccl_log.files[2]=c.log"});
  ASSERT_NE(loaded, nullptr);
  const ProtoCursor log = ProtoCursor(*loaded).Child("workload").Child("nccl_log");
  EXPECT_EQ(log.FilePath("files", 0), file.directory() + "/a/b.log");
  EXPECT_EQ(log.FilePath("files", 1), "/abs.log");
  EXPECT_EQ(log.FilePath("files", 2), "c.log");
}

}  // namespace
}  // namespace railyard
