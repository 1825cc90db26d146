// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/preset.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(PresetTest, EveryPresetIsMadeAndCarriesItsName) {
  ASSERT_FALSE(Presets().empty());
  for (const Preset& preset : Presets()) {
    const auto graph = MakePreset(preset.name);
    ASSERT_TRUE(graph.has_value()) << preset.name;
    EXPECT_EQ(graph->name, preset.name);
    EXPECT_EQ(preset.description.find('\n'), std::string::npos);
  }
}

TEST(PresetTest, TheSizeIsInTheName) {
  EXPECT_EQ(MakePreset("h100-1x8")->gpus().size(), 8u);
  EXPECT_EQ(MakePreset("h100-2x8-rail-optimized")->gpus().size(), 16u);
  EXPECT_EQ(MakePreset("h100-4x8-rail-optimized")->gpus().size(), 32u);
}

TEST(PresetTest, FourServersHaveFourSpinesUnderWhichNothingBlocks) {
  const auto graph = MakePreset("h100-4x8-rail-optimized");
  EXPECT_TRUE(graph->FindDevice("spine3").has_value());
  EXPECT_FALSE(graph->FindDevice("spine4").has_value());
  EXPECT_TRUE(graph->FindCable("server1/nic3--leaf3").has_value());
}

TEST(PresetTest, DescriptionsAreOneSentencePerPreset) {
  EXPECT_EQ(Presets()[0].description,
            "1 DGX H100 server of 8 GPUs and 8 400 Gb/s NICs, 8 leaves (one per rail), 1 spine");
  EXPECT_EQ(Presets()[2].description,
            "4 DGX H100 servers of 8 GPUs and 8 400 Gb/s NICs, 8 leaves (one per rail), 4 spines");
}

TEST(PresetTest, AnUnknownNameMakesNothing) { EXPECT_FALSE(MakePreset("h100").has_value()); }

}  // namespace
}  // namespace railyard
