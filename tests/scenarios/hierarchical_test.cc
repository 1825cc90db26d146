// SPDX-License-Identifier: GPL-2.0-only
// AllToAll in two steps: what crosses what, against the sums of what pairs have for one another.
#include <string>

#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class HierarchicalTest : public ProgramTest {};

// m for each of 32 ranks on 4 servers of 8: 4 m to each GPU of the server, then 8 m to each of the
// three GPUs of the rail. As much leaves servers as in one step, and all of it stays on its rail.
TEST_F(HierarchicalTest, AllToAllCrossesTheNetworkOnItsRails) {
  constexpr int64_t kPart = 64 << 10;
  const EndedRun run =
      RunText(RailOptimized(4) + Program("ALL_TO_ALL", "2MiB", "hierarchical_groups_of: 8"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ASSERT_EQ(run.pairs.size(), 32u * (7 + 3));
  for (size_t row = 0; row < run.pairs.size(); ++row) {
    const int64_t from = run.pairs.Integer(row, "source_gpu");
    const int64_t to = run.pairs.Integer(row, "destination_gpu");
    const bool is_within = from / 8 == to / 8;
    EXPECT_EQ(run.pairs.Integer(row, "payload_bytes"), (is_within ? 4 : 8) * kPart);
    EXPECT_TRUE(is_within || from % 8 == to % 8);
  }
  EXPECT_EQ(run.OfTier("LEAF_SPINE", "payload_bytes"), 0);
  const EndedRun direct = RunText(RailOptimized(4) + Program("ALL_TO_ALL", "2MiB"));
  EXPECT_EQ(run.OfTier("NIC_LEAF", "payload_bytes"), direct.OfTier("NIC_LEAF", "payload_bytes"));
  // Large parts gain nothing: NVLink carries more. Small ones are fewer messages by far.
  EXPECT_EQ(run.Integer("traffic.message_bytes.count"), 32 * (7 + 3));
  EXPECT_EQ(direct.Integer("traffic.message_bytes.count"), 32 * 31);
  EXPECT_EQ(run.collectives.Text(0, "kind"), "AllToAllv");
  EXPECT_EQ(run.collectives.size(), 2u);
}

}  // namespace
}  // namespace railyard::testing
