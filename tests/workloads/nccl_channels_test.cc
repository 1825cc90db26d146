// SPDX-License-Identifier: GPL-2.0-only
// Expected rings and counts are those NCCL's own graph search gives for DGX H100.
#include "workloads/nccl/nccl_channels.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "traces/trace/nccl_version.h"
#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_graph.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

NcclSettings Version(uint32_t version) {
  NcclSettings settings;
  settings.version = version;
  return settings;
}

TEST(ParseNcclVersion, EncodesAsNcclDoes) {
  EXPECT_EQ(ParseNcclVersion("2.27.5"), 22705u);
  EXPECT_EQ(ParseNcclVersion("2.30.7-1"), 23007u);
  EXPECT_EQ(ParseNcclVersion("2.27.5+cuda12.9"), 22705u);
  EXPECT_EQ(ParseNcclVersion("2.8.4"), 2804u);
}

TEST(NcclVersionText, IsWhatIsParsed) {
  for (const char* text : {"2.27.5", "2.8.4", "2.9.6", "2.30.7"}) {
    EXPECT_EQ(NcclVersionText(*ParseNcclVersion(text)), text);
  }
}

TEST(ParseNcclVersion, RefusesWhatIsNoVersion) {
  for (const char* text : {"", "2", "2.27", "2.27.", "2.27.5x", "v2.27.5", "3.0.0", "2.100.0"}) {
    EXPECT_EQ(ParseNcclVersion(text), std::nullopt) << text;
  }
}

TEST(BuildChannels, GivesOneServerTwentyFourChannelsInGpuOrder) {
  for (const uint32_t gpus : {4u, 8u}) {
    const auto channels = BuildChannels(Nodes(1, gpus), {});
    ASSERT_THAT(channels.rings, SizeIs(24));
    std::vector<uint32_t> order(gpus);
    std::iota(order.begin(), order.end(), 0u);
    for (const auto& ring : channels.rings) EXPECT_EQ(ring, order);
    EXPECT_THAT(channels.assumptions, IsEmpty());
  }
}

// "32 coll channels" of NCCL 2.29.7 on 8 GB300 in one NVLink island: 16 rings of 45 GB/s, twice,
// and 8 heads of 80 GB/s for NVLS.
TEST(BuildChannels, GivesBlackwellThirtyTwoChannelsInOneServer) {
  CommunicatorLayout layout = Nodes(1, 8);
  layout.generation = GpuGeneration::kBlackwell;
  EXPECT_THAT(BuildChannels(layout, {}).rings, SizeIs(32));
  const TunerPlatform platform = SearchedPlatform(layout);
  EXPECT_EQ(platform.ring.channel_count, 16u);
  EXPECT_DOUBLE_EQ(platform.ring.intra_gb_per_s, 45);
  EXPECT_EQ(platform.nvls.channel_count, 8u);
  EXPECT_DOUBLE_EQ(platform.nvls.intra_gb_per_s, 80);
}

// NCCL knows Blackwell from 2.25 on; of what 2.31 and 2.32 changed only their
// tuner is known here.
TEST(BuildChannels, NotesAVersionWhoseRulesAreNotKnown) {
  CommunicatorLayout layout = Nodes(1, 8);
  const auto notes = [&](uint32_t version) {
    NcclSettings settings;
    settings.version = version;
    return BuildChannels(layout, settings).assumptions;
  };
  EXPECT_THAT(notes(23007), IsEmpty());
  EXPECT_THAT(notes(23102), ElementsAre(HasSubstr("NCCL 2.31.2: of its rules those of")));
  EXPECT_THAT(notes(23300), ElementsAre(HasSubstr("NCCL 2.33.0: its rules are not known")));
  EXPECT_THAT(notes(22005), IsEmpty());
  layout.generation = GpuGeneration::kBlackwell;
  EXPECT_THAT(notes(22501), IsEmpty());
  EXPECT_THAT(notes(22005), ElementsAre(HasSubstr("NCCL 2.20.5 with Blackwell")));
}

// 12 rings of 20 GB/s on A100 (240 GB/s of NVLink each way).
TEST(BuildChannels, GivesAmpereTwentyFourChannelsInOneServer) {
  CommunicatorLayout layout = Nodes(1, 8);
  layout.generation = GpuGeneration::kAmpere;
  EXPECT_THAT(BuildChannels(layout, {}).rings, SizeIs(24));
  EXPECT_DOUBLE_EQ(SearchedPlatform(layout).ring.intra_gb_per_s, 20);
}

// NCCL prints 1 x 12/12 GB/s for the ring and 1 x 24/12 for the tree of servers with one NIC of 100
// Gb/s; two for every GPU of four, or a NIC for two GPUs, come to the same here.
TEST(SearchedPlatform, TreesGoTwiceAsFastAsTheirNicsInsideAServer) {
  CommunicatorLayout layout = Nodes(2, 8);
  layout.generation = GpuGeneration::kAmpere;
  layout.nic_bps = 100'000'000'000;
  layout.gpus_per_nic = 8;
  const auto total = [](const SearchedGraph& graph) {
    return std::pair(graph.channel_count * graph.intra_gb_per_s,
                     graph.channel_count * graph.inter_gb_per_s);
  };
  EXPECT_EQ(total(SearchedPlatform(layout).ring), std::pair(12.0, 12.0));
  EXPECT_EQ(total(SearchedPlatform(layout).tree), std::pair(24.0, 12.0));
  layout.gpus_per_nic = 2;
  EXPECT_EQ(total(SearchedPlatform(layout).ring), std::pair(48.0, 48.0));
  EXPECT_EQ(total(SearchedPlatform(layout).tree), std::pair(96.0, 48.0));
}

// 240 GB/s on A100, 371 on H100; and no faster than the list of what is tried.
TEST(SearchedPlatform, TreesGoNoFasterThanNvlinks) {
  CommunicatorLayout layout = Nodes(2, 8);
  layout.generation = GpuGeneration::kAmpere;
  layout.nic_bps = 200'000'000'000;
  EXPECT_DOUBLE_EQ(SearchedPlatform(layout).ring.intra_gb_per_s, 24);
  EXPECT_DOUBLE_EQ(SearchedPlatform(layout).tree.intra_gb_per_s, 30);
  layout.generation = GpuGeneration::kHopper;
  EXPECT_DOUBLE_EQ(SearchedPlatform(layout).tree.intra_gb_per_s, 45);
  layout.nic_bps = 400'000'000'000;
  EXPECT_DOUBLE_EQ(SearchedPlatform(layout).tree.intra_gb_per_s, 48);
}

TEST(BuildChannels, GivesOneRankNoChannels) {
  EXPECT_THAT(BuildChannels(Nodes(1, 1), {}).rings, IsEmpty());
}

TEST(BuildChannels, PrintsTheRingsNcclPrintsForTwoServers) {
  const auto channels = BuildChannels(Nodes(2, 8), {});
  ASSERT_THAT(channels.rings, SizeIs(16));
  EXPECT_THAT(channels.rings[0], ElementsAre(0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8));
  EXPECT_THAT(channels.rings[1], ElementsAre(0, 8, 15, 14, 13, 12, 11, 10, 9, 1, 2, 3, 4, 5, 6, 7));
  for (size_t c = 0; c < 8; ++c) EXPECT_EQ(channels.rings[c + 8], channels.rings[c]);
  EXPECT_THAT(channels.assumptions, IsEmpty());
}

TEST(BuildChannels, PrintsTheRingNcclPrintsForFourServers) {
  const auto channels = BuildChannels(Nodes(4, 8), {});
  EXPECT_THAT(channels.rings[0],
              ElementsAre(0, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11, 12, 13, 14, 15, 8, 16, 23, 22, 21, 20,
                          19, 18, 17, 25, 26, 27, 28, 29, 30, 31, 24));
}

TEST(BuildChannels, ChangesRailAtTheWrapOfThreeServers) {
  const auto channels = BuildChannels(Nodes(3, 8), {});
  EXPECT_EQ(channels.rings[0].front(), 0u);
  EXPECT_EQ(channels.rings[0].back(), 17u);
  EXPECT_EQ(channels.sending_nic[0][17], 1u);
}

TEST(BuildChannels, EntersAndLeavesByOneRailWithCrossNic0) {
  NcclSettings settings;
  settings.cross_nic = 0;
  const auto channels = BuildChannels(Nodes(2, 8), settings);
  ASSERT_THAT(channels.rings, SizeIs(16));
  EXPECT_THAT(channels.rings[3], ElementsAre(0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1));
  EXPECT_EQ(channels.sending_nic[3][4], 3u);  // GPU 4 sends through GPU 3's NIC
  EXPECT_EQ(channels.sending_nic[3][12], 3u);
}

TEST(BuildChannels, ShiftsTheRailWithCrossNic1) {
  NcclSettings settings;
  settings.cross_nic = 1;
  const auto channels = BuildChannels(Nodes(2, 8), settings);
  EXPECT_THAT(channels.rings[3], ElementsAre(0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1));
  EXPECT_EQ(channels.sending_nic[3][4], 4u);
}

TEST(BuildChannels, UsesPxnRingsWith200GigabitNics) {
  CommunicatorLayout layout = Nodes(2, 8);
  layout.nic_bps = 200'000'000'000;
  const auto channels = BuildChannels(layout, {});
  ASSERT_THAT(channels.rings, SizeIs(16));
  EXPECT_EQ(channels.sending_nic[0][1], 0u);
  EXPECT_THAT(channels.assumptions, IsEmpty());
}

TEST(BuildChannels, GivesOneGpuPerServerFourChannels) {
  const auto channels = BuildChannels(Nodes(4, 1), {});
  ASSERT_THAT(channels.rings, SizeIs(4));
  EXPECT_THAT(channels.rings[3], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(channels.assumptions, IsEmpty());
}

TEST(BuildChannels, GivesServersWithFourGpusSixteenChannels) {
  const auto channels = BuildChannels(Nodes(2, 4, 4), {});
  EXPECT_THAT(channels.rings, SizeIs(16));
  EXPECT_THAT(channels.assumptions, ElementsAre(HasSubstr("servers with 4 GPUs")));
}

// Two rings a NIC, as with one GPU and with four.
TEST(BuildChannels, GivesServersWithTwoGpusEightChannels) {
  EXPECT_THAT(BuildChannels(Nodes(2, 2), {}).rings, SizeIs(8));
}

TEST(BuildChannels, SaysWhatItAssumes) {
  EXPECT_THAT(BuildChannels(Nodes(1, 3), {}).assumptions,
              ElementsAre(HasSubstr("3 GPUs in one server")));
  EXPECT_THAT(BuildChannels(Nodes(2, 2), {}).assumptions,
              ElementsAre(HasSubstr("2 of 8 GPUs per server")));
  EXPECT_THAT(BuildChannels(Nodes({8, 4}), {}).assumptions,
              ElementsAre(HasSubstr("servers differ")));
  CommunicatorLayout layout = Nodes(2, 8);
  layout.nic_bps = 100'000'000'000;
  EXPECT_THAT(BuildChannels(layout, {}).assumptions, ElementsAre(HasSubstr("100 Gb/s")));
  NcclSettings settings;
  settings.cross_nic = 0;
  settings.pxn_disable = true;
  EXPECT_THAT(BuildChannels(Nodes(2, 8), settings).assumptions,
              ElementsAre(HasSubstr("PXN_DISABLE")));
}

TEST(BuildChannels, MakesEveryRingVisitEveryRankAndCrossEveryServerOnce) {
  for (const uint32_t cross_nic : {0u, 1u, 2u}) {
    NcclSettings settings;
    settings.cross_nic = cross_nic;
    for (const CommunicatorLayout& layout :
         {Nodes(2, 8), Nodes(3, 8), Nodes(5, 4, 4), Nodes(4, 2), Nodes(3, 5), Nodes({8, 3, 1}),
          Nodes(7, 1), Filled(61)}) {
      const auto channels = BuildChannels(layout, settings);
      for (const auto& ring : channels.rings) {
        ASSERT_EQ(ring.front(), 0u);
        std::vector<uint32_t> sorted = ring;
        std::sort(sorted.begin(), sorted.end());
        for (uint32_t rank = 0; rank < sorted.size(); ++rank) ASSERT_EQ(sorted[rank], rank);
        std::map<uint32_t, int> leaves;
        for (size_t i = 0; i < ring.size(); ++i) {
          const uint32_t node = layout.ranks[ring[i]].node;
          const uint32_t next_node = layout.ranks[ring[(i + 1) % ring.size()]].node;
          if (node == next_node) continue;
          EXPECT_EQ(next_node, (node + 1) % layout.node_count());
          ++leaves[node];
        }
        ASSERT_EQ(leaves.size(), layout.node_count());
        for (const auto& [node, count] : leaves) ASSERT_EQ(count, 1) << node;
      }
    }
  }
}

TEST(BuildChannels, LoadsEveryNicOfUniformServersEqually) {
  for (const uint32_t cross_nic : {0u, 1u, 2u}) {
    NcclSettings settings;
    settings.cross_nic = cross_nic;
    for (const CommunicatorLayout& layout :
         {Nodes(2, 8), Nodes(3, 8), Nodes(2, 4, 4), Nodes(4, 2), Nodes(3, 5), Nodes(2, 6)}) {
      const auto channels = BuildChannels(layout, settings);
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> out;
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> in;
      for (size_t c = 0; c < channels.rings.size(); ++c) {
        const auto& ring = channels.rings[c];
        for (size_t i = 0; i < ring.size(); ++i) {
          const RankPlace& from = layout.ranks[ring[i]];
          const RankPlace& to = layout.ranks[ring[(i + 1) % ring.size()]];
          if (from.node == to.node) continue;
          ++out[{from.node, channels.sending_nic[c][ring[i]]}];
          ++in[{to.node, to.local_index}];
        }
      }
      const size_t nics = layout.ranks.size();
      const size_t per_nic = channels.rings.size() * layout.node_count() / nics;
      EXPECT_EQ(out.size(), nics);
      EXPECT_EQ(in.size(), nics);
      for (const auto& [nic, count] : out) EXPECT_EQ(count, per_nic);
      for (const auto& [nic, count] : in) EXPECT_EQ(count, per_nic);
    }
  }
}

TEST(BuildChannels, StaysOnOneRailWithAnEvenNumberOfServers) {
  const CommunicatorLayout layout = Nodes(4, 8);
  const auto channels = BuildChannels(layout, {});
  for (size_t c = 0; c < channels.rings.size(); ++c) {
    const auto& ring = channels.rings[c];
    for (size_t i = 0; i < ring.size(); ++i) {
      const RankPlace& from = layout.ranks[ring[i]];
      const RankPlace& to = layout.ranks[ring[(i + 1) % ring.size()]];
      if (from.node != to.node) {
        EXPECT_EQ(from.local_index, to.local_index);
        EXPECT_EQ(channels.sending_nic[c][ring[i]], from.local_index);
      }
    }
  }
}

TEST(BuildChannels, HonoursMaxThenMinNchannels) {
  NcclSettings settings;
  settings.max_nchannels = 3;
  EXPECT_THAT(BuildChannels(Nodes(2, 8), settings).rings, SizeIs(3));
  settings.min_nchannels = 7;
  const auto channels = BuildChannels(Nodes(2, 8), settings);
  ASSERT_THAT(channels.rings, SizeIs(7));
  EXPECT_EQ(channels.rings[3], channels.rings[0]);
  EXPECT_EQ(channels.rings[6], channels.rings[0]);
  settings.max_nchannels = 0;
  settings.min_nchannels = 100;
  EXPECT_THAT(BuildChannels(Nodes(2, 8), settings).rings, SizeIs(64));
  settings.version = 22403;
  EXPECT_THAT(BuildChannels(Nodes(2, 8), settings).rings, SizeIs(32));
}

std::pair<uint32_t, uint32_t> P2pChannels(const CommunicatorLayout& layout,
                                          const NcclSettings& settings) {
  const auto channels = BuildChannels(layout, settings);
  return {channels.p2p_channel_count, channels.p2p_channels_per_peer};
}

TEST(BuildChannels, GivesPeersTheChannelsOf230) {
  EXPECT_THAT(P2pChannels(Nodes(1, 8), Version(23007)), Pair(32, 32));
  EXPECT_THAT(P2pChannels(Nodes(2, 8), Version(23007)), Pair(16, 4));
  EXPECT_THAT(P2pChannels(Nodes(4, 8), Version(23007)), Pair(16, 4));
  EXPECT_THAT(P2pChannels(Nodes(16, 8), Version(23007)), Pair(16, 1));
  EXPECT_THAT(P2pChannels(Nodes(128, 8), Version(23007)), Pair(16, 1));
}

TEST(BuildChannels, GivesPeersTheChannelsBefore229) {
  EXPECT_THAT(P2pChannels(Nodes(1, 8), Version(22809)), Pair(32, 32));
  EXPECT_THAT(P2pChannels(Nodes(2, 8), Version(22809)), Pair(16, 2));
  EXPECT_THAT(P2pChannels(Nodes(4, 8), Version(22705)), Pair(16, 2));
  EXPECT_THAT(P2pChannels(Filled(33), Version(22705)).second, 1u);
  EXPECT_THAT(P2pChannels(Nodes(5, 8), Version(22705)), Pair(16, 1));
}

TEST(BuildChannels, HonoursNchannelsPerNetPeer) {
  NcclSettings settings;
  settings.nchannels_per_net_peer = 8;
  EXPECT_THAT(P2pChannels(Nodes(4, 8), settings), Pair(16, 8));
}

// Uses the rings that a log states, repeated as often; the rails determine by which NIC data leaves
// a server.
TEST(BuildChannels, TakesTheRingsThatAreStatedBeforeTheRules) {
  CommunicatorLayout layout = Nodes(2, 2, 2);
  layout.rings = {{0, 1, 3, 2}, {0, 1, 2, 3}, {0, 1, 2, 3}};
  const CommunicatorChannels channels = BuildChannels(layout, {});
  EXPECT_EQ(channels.rings, layout.rings);
  // The next server is entered on the rail of the last GPU.
  EXPECT_EQ(channels.sending_nic[0][1], 1u);
  EXPECT_EQ(channels.sending_nic[0][2], 0u);
  // It is entered on the rail by which the ring came in: over PXN.
  EXPECT_EQ(channels.sending_nic[1][1], 0u);
  EXPECT_EQ(channels.sending_nic[1][3], 0u);
  NcclSettings settings;
  settings.pxn_disable = true;
  settings.max_nchannels = 2;
  const CommunicatorChannels without = BuildChannels(layout, settings);
  EXPECT_EQ(without.rings.size(), 2u);
  EXPECT_EQ(without.sending_nic[1][1], 1u);
}

}  // namespace
}  // namespace railyard
