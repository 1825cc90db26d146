// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/congestion/congestion_controls.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {
namespace {

TEST(CongestionControlsTest, AllAreThereByName) {
  EXPECT_THAT(CongestionControlNames(), ::testing::IsSupersetOf({"NONE", "DCQCN", "DCTCP", "TIMELY",
                                                                 "HPCC", "SWIFT", "CUBIC"}));
  for (const std::string& name : CongestionControlNames()) {
    const auto control = CongestionControlNamed(name)->Create<CongestionControl>();
    ASSERT_TRUE(control) << name;
    control->Open({.line_rate_bps = 400'000'000'000,
                   .window_bytes = 1 << 20,
                   .mtu_bytes = 4'096,
                   .full_packet_wire_bytes = 4'178,
                   .base_rtt_ps = 10'000'000,
                   .hop_count = 4});
    EXPECT_EQ(control->limits(FlowId{0}).rate_bps, SendLimits::kNoLimit) << name;
  }
}

TEST(CongestionControlsTest, AnotherNameIsNone) {
  EXPECT_FALSE(CongestionControlNamed("RENO").has_value());
}

TEST(CongestionControlsTest, EveryAttributeSaysWhereItsDefaultComesFrom) {
  for (const std::string& name : CongestionControlNames()) {
    const ns3::TypeId type_id = CongestionControlNamed(name)->GetTypeId();
    for (size_t i = 0; i < type_id.GetAttributeN(); ++i) {
      EXPECT_NE(type_id.GetAttribute(i).help.find('('), std::string::npos)
          << name << " " << type_id.GetAttribute(i).name;
    }
  }
}

}  // namespace
}  // namespace railyard
