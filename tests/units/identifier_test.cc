// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/units/identifier.h"

#include <set>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

using Apple = Identifier<struct AppleTag>;
using Pear = Identifier<struct PearTag>;

// Free at run time.
static_assert(sizeof(Apple) == sizeof(uint32_t) && alignof(Apple) == alignof(uint32_t));
static_assert(std::is_trivially_copyable_v<Apple> && std::is_standard_layout_v<Apple>);

// An index without a cast, but never the other way round, nor from one kind to another.
static_assert(std::is_convertible_v<Apple, uint32_t>);
static_assert(!std::is_convertible_v<uint32_t, Apple> && std::is_constructible_v<Apple, uint32_t>);
static_assert(!std::is_convertible_v<Apple, Pear> && !std::is_constructible_v<Pear, Apple>);
static_assert(!std::is_assignable_v<Apple&, Pear> && !std::is_assignable_v<Apple&, uint32_t>);

template <typename Apples, typename Pears>
concept Comparable = requires(Apples a, Pears b) {
  a == b;
};
template <typename Apples, typename Pears>
concept Ordered = requires(Apples a, Pears b) {
  a < b;
};
static_assert(Comparable<Apple, Apple> && !Comparable<Apple, Pear>);
static_assert(Ordered<Apple, Apple> && !Ordered<Apple, Pear>);

// Adjacent parameters of two kinds cannot be swapped.
constexpr uint32_t Pack(Apple apple, Pear pear) { return apple << 16 | pear; }
static_assert(std::is_invocable_v<decltype(Pack), Apple, Pear>);
static_assert(!std::is_invocable_v<decltype(Pack), Pear, Apple>);

TEST(IdentifierTest, IsTheIndexItWasMadeOf) {
  const std::vector<int> weights = {5, 6, 7};
  EXPECT_EQ(weights[Apple{2}], 7);
  EXPECT_EQ(Pack(Apple{3}, Pear{4}), 3u << 16 | 4u);
  EXPECT_EQ(Apple{}, Apple{0});
}

TEST(IdentifierTest, NoneIsTheLastNumber) {
  EXPECT_EQ(static_cast<uint32_t>(Apple::kNone), UINT32_MAX);
  EXPECT_NE(Apple{0}, Apple::kNone);
}

TEST(IdentifierTest, CountsInLoopsAndIsOrdered) {
  std::vector<uint32_t> seen;
  for (Apple apple{1}; apple < Apple{4}; ++apple) seen.push_back(apple);
  EXPECT_EQ(seen, (std::vector<uint32_t>{1, 2, 3}));
  Apple apple{6};
  EXPECT_EQ(apple++, Apple{6});
  EXPECT_EQ(apple, Apple{7});
  EXPECT_EQ((std::set<Apple>{Apple{2}, Apple{1}, Apple{2}}).size(), 2u);
}

TEST(IdentifierTest, IsAKeyOfHashedSets) {
  std::unordered_set<Apple> apples = {Apple{1}, Apple{1}, Apple{2}};
  EXPECT_EQ(apples.size(), 2u);
  EXPECT_TRUE(apples.contains(Apple{2}));
  EXPECT_FALSE(apples.contains(Apple{3}));
}

}  // namespace
}  // namespace railyard
