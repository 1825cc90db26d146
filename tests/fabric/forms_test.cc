// SPDX-License-Identifier: GPL-2.0-only
// Results do not depend on the form ports take: random networks under random loads, each run with
// ports that take the short form wherever they can, and with ports that never do.
#include <gtest/gtest.h>

#include "tests/fabric/random_network.h"

namespace railyard {
namespace {

using testing::RandomCase;
using testing::RandomOutcome;
using testing::RunRandomCase;

// Counts what the cases reached, so that the comparison cannot become empty.
struct Reached {
  uint64_t general_hops = 0;
  uint64_t sent = 0;
  uint64_t xoff_frames = 0;
  uint64_t ecn_marked = 0;
  uint64_t dropped_for_buffers = 0;
  uint64_t holds = 0;
  uint64_t replicated_bytes = 0;
  uint64_t reduced_bytes = 0;
};

Reached CompareForms(FlowControl flow_control, uint64_t first_seed, uint64_t cases) {
  Reached reached;
  for (uint64_t seed = first_seed; seed < first_seed + cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomOutcome in_short =
        RunRandomCase({.seed = seed, .form = PortForm::kShort, .flow_control = flow_control});
    const RandomOutcome in_general =
        RunRandomCase({.seed = seed, .form = PortForm::kGeneral, .flow_control = flow_control});
    EXPECT_NE(in_short.trajectory_hash, 0u);
    EXPECT_EQ(in_short.trajectory_hash, in_general.trajectory_hash);
    EXPECT_EQ(in_short.figures, in_general.figures);
    reached.general_hops += in_short.general_hops;
    reached.sent += in_short.sent;
    reached.xoff_frames += in_short.xoff_frames;
    reached.ecn_marked += in_short.ecn_marked;
    reached.dropped_for_buffers += in_short.dropped_for_buffers;
    reached.holds += in_short.holds;
    reached.replicated_bytes += in_short.replicated_bytes;
    reached.reduced_bytes += in_short.reduced_bytes;
    if (::testing::Test::HasFailure()) break;
  }
  return reached;
}

TEST(FormsTest, BothFormsAgreeUnderPauseFrames) {
  const Reached reached = CompareForms(FlowControl::kPfc, 1, 150);
  EXPECT_GT(reached.xoff_frames, 1'000u);
  EXPECT_GT(reached.ecn_marked, 1'000u);
  EXPECT_GT(reached.dropped_for_buffers, 100u);
  EXPECT_GT(reached.general_hops, 1'000u);
  EXPECT_LT(reached.general_hops, reached.sent / 2 + reached.sent / 4);
  EXPECT_GT(reached.holds, 0u);
  EXPECT_GT(reached.replicated_bytes, 1'000'000u);
  EXPECT_GT(reached.reduced_bytes, 1'000'000u);
}

TEST(FormsTest, BothFormsAgreeWithoutFlowControl) {
  const Reached reached = CompareForms(FlowControl::kNone, 1'001, 150);
  EXPECT_EQ(reached.xoff_frames, 0u);
  EXPECT_GT(reached.dropped_for_buffers, 1'000u);
  EXPECT_GT(reached.general_hops, 1'000u);
}

TEST(FormsTest, BothFormsAgreeUnderCredits) {
  const Reached reached = CompareForms(FlowControl::kCredits, 2'001, 150);
  EXPECT_EQ(reached.dropped_for_buffers, 0u);
  EXPECT_GT(reached.general_hops, 1'000u);
}

}  // namespace
}  // namespace railyard
