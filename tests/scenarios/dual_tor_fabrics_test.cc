// SPDX-License-Identifier: GPL-2.0-only
// A NIC with a port to each of two ToRs loses one of them while no packet is in flight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class DualTorTest : public ProgramTest {};

// Eight rings, each bound to its rail, on 16 ports of 25 GB/s. Four channels a NIC spread over its
// two ports as their hash has it.
TEST_F(DualTorTest, ARailBoundRingKeepsHalfOfItsPortsAndAllRailsTogetherLoseAtMostASixteenth) {
  const EndedRun run = RunFile(RAILYARD_SOURCE_DIR "/simulator/scenarios/dual_tor_rings.textproto");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.Drops().empty());
  double busbw_GBps = 0;
  double fault_free_GBps = 0;
  for (size_t i = 0; i < 8; ++i) {
    const double stretch = run.collectives.Real(i, "stretch");
    const double rail_GBps = run.collectives.Real(i, "busbw_GBps");
    busbw_GBps += rail_GBps;
    fault_free_GBps += rail_GBps * stretch;
    if (run.collectives.Text(i, "communicator") == "stride8/0") {
      // One port's rate less the headers of full packets; a few per cent are ACKs, credits and
      // ends.
      const double port_GBps = 25.0 * 4096 / (4096 + 82);
      EXPECT_LT(rail_GBps, port_GBps);
      EXPECT_GT(rail_GBps, 0.95 * port_GBps);
      EXPECT_GT(stretch, 1.2);
      EXPECT_LT(stretch, 2);
    } else {
      EXPECT_EQ(stretch, 1);
    }
  }
  const double lost = 1 - busbw_GBps / fault_free_GBps;
  EXPECT_GT(lost, 0.01);
  EXPECT_LT(lost, 1.0 / 16);
}

}  // namespace
}  // namespace railyard::testing
