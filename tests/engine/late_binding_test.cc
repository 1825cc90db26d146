// SPDX-License-Identifier: GPL-2.0-only
// In an executable whose main has not called InitVirtualTime().
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/engine/virtual_time.h"

namespace railyard {
namespace {

TEST(LateBindingDeathTest, ASimulatorThatExistsAlreadyIsRefused) {
  EXPECT_DEATH(
      {
        ns3::Simulator::Now();
        InitVirtualTime();
      },
      "InitVirtualTime\\(\\) was called after ns-3 had made its simulator, "
      "ns3::DefaultSimulatorImpl");
}

}  // namespace
}  // namespace railyard
