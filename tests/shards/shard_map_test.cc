// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/shards/shard_map.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kNs = 1'000;

// Servers with one NIC each, on leaves below one spine.
class ShardMapTest : public ::testing::Test {
 protected:
  DeviceId AddNic(int32_t server) {
    return graph_.AddDevice({.name = "server" + std::to_string(server) + "/nic0",
                             .kind = DeviceKind::kNic,
                             .server = ServerIndex{server},
                             .local_index = 0});
  }
  DeviceId AddSwitch(const std::string& name) {
    return graph_.AddDevice({.name = name, .kind = DeviceKind::kSwitch});
  }
  void Join(DeviceId a, DeviceId b, int64_t propagation_ps) {
    graph_.AddCable(a, b,
                    {.tier = Tier::kNicLeaf, .rate_bps = 1, .propagation_ps = propagation_ps});
  }
  std::vector<std::string> NamesOf(const std::vector<LinkId>& links) const {
    std::vector<std::string> names;
    for (const LinkId link : links) names.push_back(graph_.link(link).name);
    return names;
  }

  FabricGraph graph_;
};

TEST_F(ShardMapTest, ConsecutiveServersAreTogetherAndSwitchesWhereMostOfTheirCablesLead) {
  const std::vector<DeviceId> nics = {AddNic(0), AddNic(1), AddNic(2), AddNic(3)};
  const DeviceId leaf0 = AddSwitch("leaf0");
  const DeviceId leaf1 = AddSwitch("leaf1");
  for (size_t server = 0; server < 3; ++server) Join(nics[server], leaf0, 100 * kNs);
  Join(nics[3], leaf1, 50 * kNs);

  const ShardMap map = DivideIntoShards(graph_, 2);

  EXPECT_EQ(map.of_device[nics[0]], 0u);
  EXPECT_EQ(map.of_device[nics[1]], 0u);
  EXPECT_EQ(map.of_device[nics[2]], 1u);
  EXPECT_EQ(map.of_device[nics[3]], 1u);
  EXPECT_EQ(map.of_device[leaf0], 0u);
  EXPECT_EQ(map.of_device[leaf1], 1u);
  EXPECT_THAT(NamesOf(map.outgoing[1]), ElementsAre("server2/nic0>leaf0"));
  EXPECT_THAT(NamesOf(map.incoming[1]), ElementsAre("leaf0>server2/nic0"));
  EXPECT_THAT(NamesOf(map.outgoing[0]), ElementsAre("leaf0>server2/nic0"));
  EXPECT_THAT(NamesOf(map.incoming[0]), ElementsAre("server2/nic0>leaf0"));
  // That of the shorter cable, which joins no two shards, does not matter.
  EXPECT_EQ(map.lookahead_ps, 100 * kNs);
}

TEST_F(ShardMapTest, SwitchesThatLeadEverywhereAlikeAreSpreadOverTheShards) {
  const std::vector<DeviceId> nics = {AddNic(0), AddNic(1)};
  std::vector<DeviceId> rails;
  for (int rail = 0; rail < 4; ++rail) {
    rails.push_back(AddSwitch("leaf" + std::to_string(rail)));
    for (const DeviceId nic : nics) Join(nic, rails.back(), (100 + rail) * kNs);
  }
  const DeviceId spine = AddSwitch("spine0");
  for (const DeviceId rail : rails) Join(rail, spine, 300 * kNs);

  const ShardMap map = DivideIntoShards(graph_, 2);

  const std::vector<uint32_t> of_rails = {map.of_device[rails[0]], map.of_device[rails[1]],
                                          map.of_device[rails[2]], map.of_device[rails[3]]};
  EXPECT_THAT(of_rails, UnorderedElementsAre(0u, 0u, 1u, 1u));
  EXPECT_LT(map.of_device[spine], 2u);
  // Each NIC has two of its four rails in the other shard, and the spine two of four leaves.
  EXPECT_EQ(map.outgoing[0].size(), 2u + 2u + 2u);
  EXPECT_EQ(map.outgoing[1].size(), 2u + 2u + 2u);
  EXPECT_EQ(map.lookahead_ps, 100 * kNs);
}

TEST_F(ShardMapTest, OneShardHasNoBorder) {
  const DeviceId nic = AddNic(0);
  const DeviceId leaf = AddSwitch("leaf0");
  Join(nic, leaf, 100 * kNs);
  AddSwitch("joined to nothing");

  const ShardMap map = DivideIntoShards(graph_, 1);

  EXPECT_THAT(map.of_device, ElementsAre(0u, 0u, 0u));
  EXPECT_THAT(map.outgoing[0], IsEmpty());
  EXPECT_EQ(map.lookahead_ps, INT64_MAX);
}

}  // namespace
}  // namespace railyard
