// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/nic.h"

#include <string>

#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "simulator/transport/congestion/congestion_control_base.h"

namespace railyard {
namespace {

TEST(NicTest, AttributesAreTheSettings) {
  const auto nic = ns3::CreateObject<Nic>();
  nic->SetAttribute("MtuBytes", ns3::UintegerValue(1'024));
  nic->SetAttribute("WindowBytes", ns3::UintegerValue(65'536));
  nic->SetAttribute("AckEveryPackets", ns3::UintegerValue(2));
  nic->SetAttribute("IbTimeout", ns3::UintegerValue(14));
  nic->SetAttribute("IbRetryCount", ns3::UintegerValue(3));
  nic->SetAttribute("BurstPackets", ns3::UintegerValue(4));
  nic->SetAttribute("Recovery", ns3::StringValue("SELECTIVE_REPEAT"));
  nic->SetAttribute("ReorderTolerancePackets", ns3::UintegerValue(16));
  nic->SetAttribute("CnpInterval", ns3::TimeValue(ns3::MicroSeconds(4)));
  nic->SetAttribute("CongestionControl", ns3::StringValue("railyard::Dcqcn[MinRateBps=5000000]"));
  const NicSettings& settings = nic->settings();
  EXPECT_EQ(settings.mtu_bytes, 1'024u);
  EXPECT_EQ(settings.window_bytes, 65'536u);
  EXPECT_EQ(settings.ack_every_packets, 2u);
  EXPECT_EQ(settings.ib_timeout, 14u);
  EXPECT_EQ(settings.ib_retry_cnt, 3u);
  EXPECT_EQ(settings.burst_packets, 4u);
  EXPECT_EQ(settings.recovery, Recovery::kSelectiveRepeat);
  EXPECT_EQ(settings.reorder_tolerance_packets, 16u);
  EXPECT_EQ(settings.cnp_interval_ps, 4 * kPsPerUs);
  const auto control = settings.congestion_control.Create<CongestionControl>();
  EXPECT_EQ(control->GetInstanceTypeId().GetName(), "railyard::Dcqcn");
  ns3::UintegerValue min_rate_bps;
  control->GetAttribute("MinRateBps", min_rate_bps);
  EXPECT_EQ(min_rate_bps.Get(), 5'000'000u);
}

TEST(NicTest, DefaultsOfAttributesAreThoseOfTheSettings) {
  const auto nic = ns3::CreateObject<Nic>();
  const NicSettings defaults;
  EXPECT_EQ(nic->settings().mtu_bytes, defaults.mtu_bytes);
  EXPECT_EQ(nic->settings().window_bytes, defaults.window_bytes);
  EXPECT_EQ(nic->settings().ack_every_packets, defaults.ack_every_packets);
  EXPECT_EQ(nic->settings().ib_timeout, defaults.ib_timeout);
  EXPECT_EQ(nic->settings().ib_retry_cnt, defaults.ib_retry_cnt);
  EXPECT_EQ(nic->settings().burst_packets, defaults.burst_packets);
  EXPECT_EQ(nic->settings().recovery, defaults.recovery);
  EXPECT_EQ(nic->settings().reorder_tolerance_packets, defaults.reorder_tolerance_packets);
  EXPECT_EQ(nic->settings().cnp_interval_ps, defaults.cnp_interval_ps);
  EXPECT_EQ(nic->settings().congestion_control.GetTypeId().GetName(),
            "railyard::NoCongestionControl");
}

TEST(NicTest, WhatNoNicCanDoIsRefused) {
  const auto nic = ns3::CreateObject<Nic>();
  EXPECT_FALSE(nic->SetAttributeFailSafe("MtuBytes", ns3::UintegerValue(128)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("MtuBytes", ns3::UintegerValue(10'000)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("WindowBytes", ns3::UintegerValue(0)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("AckEveryPackets", ns3::UintegerValue(0)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("IbTimeout", ns3::UintegerValue(32)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("IbRetryCount", ns3::UintegerValue(8)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("BurstPackets", ns3::UintegerValue(0)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("ReorderTolerancePackets", ns3::UintegerValue(64)));
  EXPECT_FALSE(nic->SetAttributeFailSafe("Recovery", ns3::StringValue("GO_BACK_0")));
}

TEST(NicTest, EveryAttributeHasHelpThatSaysWhereItsDefaultComesFrom) {
  const ns3::TypeId type_id = Nic::GetTypeId();
  ASSERT_GT(type_id.GetAttributeN(), 0u);
  for (size_t i = 0; i < type_id.GetAttributeN(); ++i) {
    const std::string help = type_id.GetAttribute(i).help;
    EXPECT_NE(help.find('('), std::string::npos) << type_id.GetAttribute(i).name << ": " << help;
  }
}

}  // namespace
}  // namespace railyard
