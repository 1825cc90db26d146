// SPDX-License-Identifier: GPL-2.0-only
// Switches that differ: which, in what, and what is refused.
#include "simulator/scenario/models/fabric_models_loader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

TEST(FabricModelsLoaderTest, SwitchesDifferInWhatIsStated) {
  const auto scenario = LoadBeside(
      "switch { alpha: 0.5 }\n"
      "switches { device: [\"leaf0\", \"leaf1\"] switch { buffer: \"32MiB\" ecn_pmax: 1 } }\n"
      "switches { device: \"leaf7\" switch { lossless_data: false } }\n");
  ASSERT_NE(scenario, nullptr);
  ASSERT_EQ(scenario->switch_variants.size(), 2u);
  const SwitchVariant& first = scenario->switch_variants[0];
  std::vector<std::string> names;
  for (const DeviceId id : first.switches) names.push_back(scenario->fabric.device(id).name);
  EXPECT_THAT(names, ElementsAre("leaf0", "leaf1"));
  ASSERT_EQ(first.attributes.size(), 2u);
  EXPECT_EQ(first.attributes[0].name, "BufferBytes");
  EXPECT_EQ(first.attributes[0].value, "33554432");
  EXPECT_EQ(first.attributes[1].name, "EcnPmax");
  ASSERT_EQ(scenario->switch_variants[1].attributes.size(), 1u);
  EXPECT_EQ(scenario->switch_variants[1].attributes[0].value, "false");
}

TEST(FabricModelsLoaderTest, EveryMistakeOfSwitchesIsLocated) {
  EXPECT_EQ(FindingsBeside("switches { device: \"server0/nic0\" switch { alpha: 1 } }\n"),
            ":3:12: error: switches[0].device[0]: \"server0/nic0\" is no switch (expected e.g. "
            "\"leaf3\" or \"spine*\")\n");
  EXPECT_EQ(FindingsBeside("switches { device: \"leaf3\" switch { alpha: 1 } }\n"
                           "switches { device: \"leaf*\" switch { alpha: 2 } }\n"),
            ":4:12: error: switches[1].device[0]: \"leaf3\" differs already (expected each switch "
            "once)\n");
  EXPECT_EQ(FindingsBeside("switches { switch { alpha: 1 } }\n"),
            ":3:1: error: switches[0].device: missing (expected switches, e.g. \"leaf3\" or "
            "\"spine*\")\n");
  EXPECT_EQ(FindingsBeside("switches { device: \"leaf3\" }\n"),
            ":3:1: error: switches[0].switch: missing (expected what differs, e.g. switch { "
            "buffer: \"32MiB\" })\n");
  EXPECT_EQ(FindingsBeside("switches { device: \"leaf3\" switch {} }\n"),
            ":3:28: error: switches[0].switch: states no difference (expected e.g. switch { "
            "buffer: \"32MiB\" })\n");
  EXPECT_EQ(FindingsBeside("switches { device: \"leaf3\" switch { alpha: 100 } }\n"),
            ":3:37: error: switches[0].switch.alpha: 100 is out of range (expected 0.0078125 to "
            "8)\n");
  EXPECT_EQ(FindingsBeside("switches { device: \"leaf3\" switch { lossless_data: false mtu: "
                           "\"9KiB\" } }\n"),
            ":3:58: error: switches[0].switch.mtu: has no effect with lossless_data: false\n");
}

}  // namespace
}  // namespace railyard
