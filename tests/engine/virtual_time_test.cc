// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/virtual_time.h"

#include <string>

#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simulator-impl.h>
#include <ns3/simulator.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "tests/engine/forked_run.h"

namespace railyard {
namespace {

TEST(VirtualTimeTest, TimeCountsPicosecondsOnTheFabricSimulator) {
  EXPECT_EQ(ns3::Time::GetResolution(), ns3::Time::PS);
  EXPECT_EQ(ns3::NanoSeconds(1).GetTimeStep(), 1'000);
  EXPECT_EQ(ns3::Simulator::GetImplementation()->GetInstanceTypeId().GetName(),
            "railyard::FabricSimulatorImpl");
}

TEST(VirtualTimeTest, CallingItAgainChangesNothing) {
  InitVirtualTime();
  InitVirtualTime();
  EXPECT_EQ(ns3::Time::GetResolution(), ns3::Time::PS);
  EXPECT_EQ(ns3::Simulator::GetImplementation()->GetInstanceTypeId(),
            FabricSimulatorImpl::GetTypeId());
}

TEST(VirtualTimeTest, TheBindingOutlivesDestroy) {
  ns3::Simulator::Destroy();
  EXPECT_EQ(FabricSimulatorImpl::Get().NowPs(), 0);
}

TEST(VirtualTimeDeathTest, AskingForTheEngineOnAnotherSimulatorIsRefused) {
  EXPECT_DEATH(
      {
        RunForked(Implementation::kNs3Default, [](std::string&) { FabricSimulatorImpl::Get(); });
        std::abort();
      },
      "InitVirtualTime\\(\\) was not called");
}

}  // namespace
}  // namespace railyard
