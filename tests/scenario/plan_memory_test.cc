// SPDX-License-Identifier: GPL-2.0-only
// Constructs the memory of two GPUs, and has them exchange values.
#include "simulator/scenario/schedule_files/plan_memory.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;
using Slot = PlanMemory::Slot;

constexpr MscclppBuffer kInput = MscclppBuffer::kInput;
constexpr MscclppBuffer kScratch = MscclppBuffer::kScratch;
constexpr RankIndex kGpu0{0};
constexpr RankIndex kGpu1{1};

class PlanMemoryTest : public ::testing::Test {
 protected:
  // An AllReduce of one chunk.
  static MscclppPlan TwoGpus() {
    MscclppPlan plan;
    plan.is_in_place = true;
    plan.gpus.resize(2);
    return plan;
  }

  PlanMemory::Value At(RankIndex gpu, const Slot& slot) {
    const auto value = memory_.ValueAt(gpu, slot);
    EXPECT_TRUE(value.has_value());
    return value.value_or(PlanMemory::Value());
  }
  // GPU 0 puts its value of chunk 0 into the first slot of GPU 1's scratch.
  void Put() {
    memory_.Write({.gpu = kGpu1, .buffer = kScratch}, 0, kGpu0, At(kGpu0, {kInput, 0}));
  }

  MscclppPlan plan_ = TwoGpus();
  Diagnostics diagnostics_;
  const std::string path_ = "plan.json";
  const MscclppPlace place_ = {.line = 7};
  PlanMemory memory_{path_, plan_, diagnostics_};
};

TEST_F(PlanMemoryTest, AtFirstAGpuHasItsOwnContributionAlone) {
  EXPECT_TRUE(At(kGpu0, {kInput, 0}).is_own);
  EXPECT_FALSE(memory_.ValueAt(kGpu0, {kInput, 1}).has_value());
  EXPECT_FALSE(memory_.ValueAt(kGpu0, {kScratch, 0}).has_value());
  // In place the result lies where the input does.
  EXPECT_EQ(memory_.SlotOf(kGpu0, MscclppBuffer::kOutput, 0), Slot(kInput, 0));
}

TEST_F(PlanMemoryTest, WhatIsPutIsAMessageWhenItIsNeeded) {
  Put();
  PlanMemory::Value value = At(kGpu1, {kScratch, 0});
  EXPECT_EQ(value.holder, kGpu0);
  ASSERT_TRUE(memory_.Fetch(kGpu1, {kScratch, 0}, value, place_));
  EXPECT_FALSE(value.holder.has_value());
  EXPECT_TRUE(memory_.IsCurrent(kGpu1, value, place_));
  const auto steps = memory_.TakeSteps();
  ASSERT_EQ(steps[0].size(), 1u);
  EXPECT_EQ(steps[0][0].made.step.send_to, 1);
  EXPECT_TRUE(steps[0][0].made.step.load_local);
  ASSERT_EQ(steps[1].size(), 1u);
  EXPECT_EQ(steps[1][0].made.step.recv_from, 0);
  EXPECT_TRUE(steps[1][0].made.step.keep);
  EXPECT_EQ(memory_.PlaceOf(steps[1][0].made.source).line, 7);
}

TEST_F(PlanMemoryTest, WhatNobodyNeedsIsNotSent) {
  Put();
  const auto steps = memory_.TakeSteps();
  EXPECT_TRUE(steps[0].empty());
}

// GPU 0 keeps a value and puts it; before it keeps another one, the first has to leave.
TEST_F(PlanMemoryTest, WhatIsPutLeavesBeforeItIsKeptAnew) {
  const auto keep = [&] {
    ExplicitStep step{.chunk = 0};
    step.step.load_local = step.step.keep = true;
    EXPECT_TRUE(memory_.SendHeld(kGpu0, 0, place_));
    EXPECT_TRUE(memory_.AddStep(kGpu0, step, place_));
    return memory_.Keep(kGpu0, 0);
  };
  const PlanMemory::Value first = keep();
  memory_.Write({.gpu = kGpu1, .buffer = kScratch}, 0, kGpu0, first);
  const PlanMemory::Value second = keep();
  EXPECT_FALSE(memory_.IsCurrent(kGpu0, first, place_));
  EXPECT_TRUE(memory_.IsCurrent(kGpu0, second, place_));
  EXPECT_THAT(diagnostics_.ToString(),
              HasSubstr("plan.json:7:1: error: needs chunk 0 of GPU 0 as it was before"));
  EXPECT_TRUE(At(kGpu1, {kScratch, 0}).is_sent);
  // The second one cannot overtake it.
  EXPECT_FALSE(memory_.SendNow(kGpu0, kGpu1, second, place_));
  // Nobody takes it: it is not sent after all.
  EXPECT_EQ(memory_.TakeSteps()[0].size(), 2u);
}

TEST_F(PlanMemoryTest, AMessageIsTakenFromItsSlotOnce) {
  EXPECT_FALSE(memory_.Take(kGpu1, {kScratch, 0}, {kScratch, 1}));
  Put();
  EXPECT_TRUE(memory_.Take(kGpu1, {kScratch, 0}, {kScratch, 1}));
  EXPECT_FALSE(memory_.ValueAt(kGpu1, {kScratch, 0}).has_value());
  EXPECT_EQ(At(kGpu1, {kScratch, 1}).holder, kGpu0);
}

TEST_F(PlanMemoryTest, AResultThatIsNotThereIsAnError) {
  plan_.is_in_place = false;
  EXPECT_FALSE(memory_.StoreResults());
  EXPECT_THAT(diagnostics_.ToString(), HasSubstr("gpus[0]: chunk 0 of the result is not written"));
}

}  // namespace
}  // namespace railyard
