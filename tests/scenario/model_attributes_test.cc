// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/model_attributes.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/control_names.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

// The attributes that no field of a block sets, and what does.
const std::set<std::string> kSetOtherwise = {
    "railyard::FabricNetwork::Seed",     // the scenario's
    "railyard::Nic::CongestionControl",  // the block itself
    "railyard::Nic::IbTimeout",          // nccl
    "railyard::Nic::IbRetryCount",       // nccl
};

TEST(ModelAttributesTest, FieldsAndAttributesAreOneToOne) {
  for (const ModelBlock& block : ModelBlocks()) {
    std::set<std::string> set;
    for (int i = 0; i < block.fields->field_count(); ++i) {
      const google::protobuf::FieldDescriptor& field = *block.fields->field(i);
      if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
      const auto attribute = AttributeOfField(block.type, field);
      ASSERT_TRUE(attribute) << block.path << "." << field.name();
      EXPECT_TRUE(set.insert(attribute->name).second) << attribute->name;
    }
    const ns3::TypeId type = ns3::TypeId::LookupByName(block.type);
    for (size_t i = 0; i < type.GetAttributeN(); ++i) {
      const std::string name = block.type + "::" + type.GetAttribute(i).name;
      EXPECT_NE(set.contains(type.GetAttribute(i).name), kSetOtherwise.contains(name)) << name;
    }
  }
}

TEST(ModelAttributesTest, FieldsBecomeValuesOfAttributes) {
  const auto loaded = LoadedScenario(std::string(kFabric) + kWorkload +
                                     "switch { buffer: \"8MiB\" alpha: 0.25 ecn_enabled: false }\n"
                                     "network { network_flow_control: NONE "
                                     "pause_response: \"1us\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  std::vector<std::string> models;
  for (const ModelAttribute& model : loaded.scenario->models) {
    models.push_back(model.type + "::" + model.name + "=" + model.value);
  }
  EXPECT_THAT(models, ::testing::UnorderedElementsAre(
                          "railyard::FabricNetwork::NetworkFlowControl=NONE",
                          "railyard::FabricNetwork::PauseResponsePs=1000000",
                          "railyard::Switch::BufferBytes=8388608", "railyard::Switch::Alpha=0.25",
                          "railyard::Switch::EcnEnabled=false"));
}

TEST(ModelAttributesTest, LinkLevelCreditsAreInfinibands) {
  const std::string text = std::string(kFabric) + kWorkload;
  EXPECT_EQ(LoadedScenario(text).scenario->stack.nic.HeaderBytes(), 82u);
  EXPECT_EQ(LoadedScenario(text + "network { network_flow_control: CREDITS }\n")
                .scenario->stack.nic.HeaderBytes(),
            26u);
}

TEST(ModelAttributesTest, WhatIsOutOfRangeIsRefusedWithTheRange) {
  EXPECT_EQ(FindingsBeside("switch { alpha: 100 }"),
            ":3:10: error: switch.alpha: 100 is out of range (expected 0.0078125 to 8)\n");
  EXPECT_EQ(FindingsBeside("switch { buffer: \"3GiB\" }"),
            ":3:10: error: switch.buffer: \"3GiB\" is out of range (expected 1 B to 2 GiB)\n");
  EXPECT_EQ(FindingsBeside("network { pause_response: \"2s\" }"),
            ":3:11: error: network.pause_response: \"2s\" is out of range (expected 0 s to 1 s)\n");
  EXPECT_EQ(FindingsBeside("nic { congestion_control { dcqcn { alpha_timer: \"0s\" } } }"),
            ":3:36: error: nic.congestion_control.dcqcn.alpha_timer: \"0s\" is out of range "
            "(expected 1 ns or more)\n");
  EXPECT_EQ(FindingsBeside("nic { congestion_control { dcqcn { min_rate: \"0Gbps\" } } }"),
            ":3:36: error: nic.congestion_control.dcqcn.min_rate: \"0Gbps\" is out of range "
            "(expected 1 bps or more)\n");
}

TEST(ModelAttributesTest, WhatWouldHaveNoEffectIsRefused) {
  EXPECT_EQ(FindingsBeside("switch { ecn_enabled: false ecn_pmax: 0.5 }"),
            ":3:29: error: switch.ecn_pmax: has no effect with ecn_enabled: false\n");
  EXPECT_EQ(FindingsBeside("switch { lossless_data: false xon_offset: \"1KiB\" }"),
            ":3:31: error: switch.xon_offset: has no effect with lossless_data: false\n");
  EXPECT_EQ(FindingsBeside("switch { headroom: \"1MiB\" mtu: \"4KiB\" }"),
            ":3:27: error: switch.mtu: has no effect on a headroom that is given\n");
  EXPECT_EQ(FindingsBeside("network { credit: \"1MiB\" }"),
            ":3:11: error: network.credit: has no effect without network_flow_control: CREDITS\n");
  EXPECT_EQ(FindingsBeside("network { flowlet_gap: \"1us\" }"),
            ":3:11: error: network.flowlet_gap: has no effect without load_balancing: FLOWLET\n");
  EXPECT_EQ(FindingsBeside("network { network_flow_control: CREDITS }\nswitch { alpha: 1 }"),
            ":4:10: error: switch.alpha: has no effect with network_flow_control: CREDITS, whose "
            "buffers are `network.credit`\n");
  EXPECT_EQ(FindingsBeside("switch { ecn_kmin: \"1MiB\" }"),
            ":3:10: error: switch.ecn_kmin: marking would begin at 1 MiB and be certain at 391 KiB "
            "(expected ecn_kmin to be at most ecn_kmax)\n");
}

TEST(ModelAttributesTest, OneCongestionControlIsChosen) {
  const auto loaded = LoadedScenario(std::string(kFabric) + kWorkload +
                                     "nic { congestion_control { swift { beta: 0.5 } } }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->stack.nic.congestion_control.GetTypeId().GetName(), "railyard::Swift");
  EXPECT_THAT(
      FindingsBeside("nic { congestion_control { swift { scaling_window_min: 200 } } }"),
      ::testing::HasSubstr("nic.congestion_control.swift: the least window of flow scaling, "
                           "of 200 packets, is not below the largest, of 100"));
  EXPECT_THAT(FindingsBeside("nic { congestion_control { timely { low_threshold: \"600us\" } } }"),
              ::testing::HasSubstr("nic.congestion_control.timely: the low threshold of 600000 ns "
                                   "is above the high one of 500000 ns"));
  EXPECT_EQ(FindingsBeside("nic { congestion_control { } }"),
            ":3:7: error: nic.congestion_control: is empty (expected " + RdmaControlNames() +
                " in it, e.g. { dcqcn {} })\n");
  EXPECT_THAT(FindingsBeside("nic { congestion_control { dcqcn {} hpcc {} } }"),
              ::testing::HasSubstr("contradicts"));
}

}  // namespace
}  // namespace railyard
