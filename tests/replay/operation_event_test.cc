// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/operation_event.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace railyard {
namespace {

TEST(OperationEventTest, ATargetTellsWhatBeginsFromWhatRuns) {
  for (const uint32_t number : {0u, 1u, 77u, OperationEvent::kNumberEnd - 1}) {
    const auto begins = OperationEvent::Of(OperationEvent::Begins(CallNumber{number}).target());
    ASSERT_TRUE(begins.is_begin());
    EXPECT_EQ(begins.call(), CallNumber{number});
    const auto runs = OperationEvent::Of(OperationEvent::Runs(RunningIndex{number}).target());
    ASSERT_FALSE(runs.is_begin());
    EXPECT_EQ(runs.operation(), RunningIndex{number});
    EXPECT_NE(begins.target(), runs.target());
  }
}

}  // namespace
}  // namespace railyard
