// SPDX-License-Identifier: GPL-2.0-only
// In an executable whose main has not called InitVirtualTime().
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/engine/virtual_time.h"

namespace railyard {
namespace {

TEST(LateBindingTest, ASimulatorThatExistsAlreadyIsRefused) {
  ns3::Simulator::Now();
  try {
    InitVirtualTime();
    FAIL() << "it was accepted";
  } catch (const EnvironmentError& error) {
    EXPECT_STREQ(error.what(),
                 "ns-3 had made its simulator, ns3::DefaultSimulatorImpl, before the first run "
                 "(expected a process that has not used it)");
  }
}

}  // namespace
}  // namespace railyard
