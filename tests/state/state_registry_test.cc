// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/state/state_registry.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

struct Owner final : StateOwner {
  explicit Owner(uint64_t walked, std::string why_never = {})
      : value(walked), why(std::move(why_never)) {}
  std::string state_name() const override { return "owner " + std::to_string(value); }
  void Visit(StateArchive& archive) override { archive.Value(value); }
  std::string WhyNeverReplayed() const override { return why; }

  uint64_t value;
  std::string why;
};

TEST(StateRegistryTest, OwnersAreWalkedInTheirOrderAndPutBack) {
  Owner first(7);
  Owner second(9);
  StateRegistry registry;
  registry.Add(first);
  registry.Add(second);
  StateArchive take(0);
  registry.Visit(take);
  ASSERT_TRUE(take.is_quiescent());
  const StateSnapshot state = take.TakeState();
  first.value = second.value = 1;
  StateArchive put(state, 0);
  registry.Visit(put);
  EXPECT_EQ(first.value, 7u);
  EXPECT_EQ(second.value, 9u);
  EXPECT_TRUE(registry.Obstacles().empty());
}

TEST(StateRegistryTest, AnOwnerSaysWhyItIsNeverReplayed) {
  Owner forgetful(1);
  Owner mindful(2, "it remembers all");
  StateRegistry registry;
  registry.Add(forgetful);
  registry.Add(mindful);
  EXPECT_THAT(registry.Obstacles(), ElementsAre(ReplayObstacle{"owner 2", "it remembers all"}));
}

// State that no owner visits may differ at any time, so no snapshot is one at rest.
TEST(StateRegistryTest, WhatIsUnknownLeavesNoSnapshotToReplay) {
  StateRegistry registry;
  registry.AddUnknown("a transport");
  StateArchive take(0);
  registry.Visit(take);
  EXPECT_FALSE(take.is_quiescent());
  EXPECT_THAT(registry.Obstacles(),
              ElementsAre(ReplayObstacle{"a transport", "it registers no state"}));
}

}  // namespace
}  // namespace railyard
