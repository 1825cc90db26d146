// SPDX-License-Identifier: GPL-2.0-only
#include "traces/dependencies/stream_layout.h"

#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

class StreamLayoutTest : public ::testing::Test {
 protected:
  uint32_t Add(const std::vector<uint32_t>& waits_for) { return layout_.Add({}, waits_for); }
  const TraceOperation& At(uint32_t number) const { return layout_.operations()[number]; }

  StreamLayout layout_;
};

TEST_F(StreamLayoutTest, AChainIsAStream) {
  const uint32_t a = Add({});
  const uint32_t b = Add({a});
  EXPECT_EQ(At(b).stream, At(a).stream);
  EXPECT_EQ(At(b).after, 0u);
  EXPECT_NE(At(Add({})).stream, At(a).stream);
}

TEST_F(StreamLayoutTest, AnOperationThatWaitsForThreeStreamsIsBehindAJoin) {
  const uint32_t a = Add({});
  const uint32_t b = Add({});
  const uint32_t c = Add({});
  const uint32_t d = Add({a, b, c});
  EXPECT_EQ(d, c + 2);  // one computation of length 0 before it
  EXPECT_EQ(At(d - 1).kind, CollectiveKind::kCompute);
  EXPECT_EQ(At(d - 1).stream, At(d).stream);
}

// d follows a, b and c: what waits for all of them waits for d.
TEST_F(StreamLayoutTest, WhatAnotherDependencyImpliesNeedsNoJoin) {
  const uint32_t a = Add({});
  const uint32_t b = Add({});
  const uint32_t c = Add({});
  const uint32_t d = Add({a, b, c});
  const uint32_t e = Add({a, b, c, d});
  EXPECT_EQ(e, d + 1);
  EXPECT_EQ(At(e).stream, At(d).stream);
  EXPECT_EQ(At(e).after, 0u);
  // So does what waits for e, by way of it.
  const uint32_t f = Add({e, b});
  EXPECT_EQ(f, e + 1);
  EXPECT_EQ(At(f).after, 0u);
}

// The last operation of the first stream is b. An operation that waits for d, which follows b,
// may be behind it there; one that waits for a alone may not.
TEST_F(StreamLayoutTest, AStreamIsUsedAgainByWhatFollowsItsLastOperation) {
  const uint32_t a = Add({});
  const uint32_t b = Add({a});
  const uint32_t c = Add({a});
  EXPECT_NE(At(c).stream, At(b).stream);
  const uint32_t d = Add({c, b});
  const uint32_t e = Add({d});
  EXPECT_EQ(At(e).stream, At(d).stream);
  const uint32_t f = Add({d});
  EXPECT_NE(At(f).stream, At(e).stream);
  EXPECT_LT(At(f).stream, 2u);
  EXPECT_EQ(At(f).after, d + 1);
  EXPECT_EQ(layout_.serialized(), 0u);
}

TEST_F(StreamLayoutTest, BeyondTheLastStreamOperationsFollowOthersAndAreCounted) {
  for (uint32_t i = 0; i < StreamLayout::kStreamsMax; ++i) Add({});
  EXPECT_EQ(layout_.serialized(), 0u);
  Add({});
  EXPECT_EQ(layout_.serialized(), 1u);
}

}  // namespace
}  // namespace railyard
