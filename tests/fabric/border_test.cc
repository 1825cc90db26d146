// SPDX-License-Identifier: GPL-2.0-only
// Two parts of a network, each on its own engine, and what crosses between them after each window,
// have the events of the whole network to the picosecond.
#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/object.h>

#include "simulator/fabric/fabric_network.h"
#include "tests/fabric/star_fixture.h"
#include "tests/fabric/switch_attributes.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPropagationPs = 120'000;

class BorderTest : public StarFixture {
 protected:
  struct Seen {
    int64_t time_ps;
    uint32_t flow;
    uint32_t sequence;
    bool operator==(const Seen&) const = default;
    auto operator<=>(const Seen&) const = default;
  };
  struct Outcome {
    std::vector<Seen> seen;
    NetworkCounters counters;
    std::vector<LinkTotals> links;  // by link
  };

  // NICs 0 and 1 are in one part; the switch and NICs 2 and 3 are in the other.
  class Part final : public PacketSink {
   public:
    Part(const FabricGraph& graph, DeviceId leaf, const BufferSettings& settings)
        : engine_(ns3::CreateObject<FabricSimulatorImpl>()),
          network_(ns3::CreateObject<FabricNetwork>()) {
      network_->Build(graph, *engine_);
      network_->SetSink(*this);
      SetBuffer(*network_->GetSwitch(leaf), settings);
      network_->Configure();
    }
    void OnPacketAtNic(PacketId index) override {
      const Packet& packet = network_->packet(index);
      seen.push_back({engine_->NowPs(), packet.flow, packet.sequence});
      network_->Deliver(index);
    }
    void OnPacketInMemory(PacketId /*index*/) override { ADD_FAILURE() << "there is no memory"; }
    void OnPacketDropped(PacketId /*index*/, DropReason reason, LinkId /*link*/) override {
      ADD_FAILURE() << DropReasonName(reason);
    }
    void Inject(const std::vector<LinkId>& path, uint32_t flow, uint32_t count) {
      const PathRef added = network_->AddPath(path);
      for (uint32_t i = 0; i < count; ++i) {
        const PacketId index = network_->AllocatePacket();
        Packet& packet = network_->packet(index);
        packet.flow = flow;
        packet.sequence = i;
        packet.path = added.first;
        packet.hop_count = added.hop_count;
        packet.kind = PacketKind::kNetworkData;
        packet.wire_bytes = 4178;
        packet.payload_bytes = 4096;
        network_->Inject(index);
      }
    }
    FabricSimulatorImpl& engine() { return *engine_; }
    FabricNetwork& network() { return *network_; }

    std::vector<Seen> seen;

   private:
    ns3::Ptr<FabricSimulatorImpl> engine_;
    ns3::Ptr<FabricNetwork> network_;
  };

  void Build() {
    for (int nic = 0; nic < 4; ++nic) AddNic(kRate, kPropagationPs + int64_t{1'000} * nic);
  }
  // All send to NIC 3, and NIC 3 to NIC 0.
  void InjectInto(std::array<Part*, 4> part_of_nic, uint32_t count) {
    for (uint32_t nic = 0; nic < 3; ++nic) {
      part_of_nic[nic]->Inject({Uplink(nic), Downlink(3)}, nic, count);
    }
    part_of_nic[3]->Inject({Uplink(3), Downlink(0)}, 3, count);
  }
  static Outcome OutcomeOf(const std::vector<Part*>& parts, uint32_t link_count) {
    Outcome outcome;
    outcome.links.resize(link_count);
    for (Part* const part : parts) {
      part->network().CheckConservation();
      outcome.seen.insert(outcome.seen.end(), part->seen.begin(), part->seen.end());
      outcome.counters.Add(part->network().counters());
      for (const LinkTotals& total : part->network().part().Totals()) {
        LinkTotals& sum = outcome.links[total.link];
        sum.sent += total.sent;
        sum.on_link += total.on_link;
        sum.payload_bytes += total.payload_bytes;
        sum.wire_bytes += total.wire_bytes;
        sum.packets += total.packets;
      }
    }
    std::ranges::sort(outcome.seen);
    return outcome;
  }
  Outcome RunWhole(const BufferSettings& settings, uint32_t count, int64_t end_ps) {
    Part whole(graph_, leaf_, settings);
    InjectInto({&whole, &whole, &whole, &whole}, count);
    whole.engine().RunBefore({end_ps, 0});
    return OutcomeOf({&whole}, graph_.link_count());
  }
  Outcome RunParts(const BufferSettings& settings, uint32_t count, int64_t end_ps) {
    Part senders(graph_, leaf_, settings);
    Part rest(graph_, leaf_, settings);
    const std::vector<LinkId> up = {Uplink(0), Uplink(1)};
    const std::vector<LinkId> down = {Downlink(0), Downlink(1)};
    senders.network().part().SetBorder(up, down);
    rest.network().part().SetBorder(down, up);
    InjectInto({&senders, &senders, &rest, &rest}, count);
    std::vector<Crossing> crossings;
    for (int64_t window_ps = kPropagationPs;; window_ps += kPropagationPs) {
      const EventPlace end = {std::min(window_ps, end_ps), 0};
      for (Part* const part : {&senders, &rest}) part->engine().RunBefore(end);
      if (end.time_ps == end_ps) break;
      for (Part* const part : {&senders, &rest}) {
        crossings.clear();
        part->network().part().Collect(end.time_ps, crossings);
        Part& other = part == &senders ? rest : senders;
        for (const Crossing& crossing : crossings) {
          EXPECT_GE(crossing.time_ps(), end.time_ps);
          other.network().part().Take(crossing);
        }
      }
    }
    EXPECT_EQ(senders.network().part().obstacle(), "");
    EXPECT_EQ(rest.network().part().obstacle(), "");
    return OutcomeOf({&senders, &rest}, graph_.link_count());
  }
  void ExpectSame(const BufferSettings& settings, uint32_t count, int64_t end_ps) {
    const Outcome whole = RunWhole(settings, count, end_ps);
    const Outcome parts = RunParts(settings, count, end_ps);
    EXPECT_EQ(whole.seen, parts.seen);
    EXPECT_EQ(whole.counters.packet_hops, parts.counters.packet_hops);
    EXPECT_EQ(whole.counters.xoff_frames, parts.counters.xoff_frames);
    EXPECT_EQ(whole.counters.xon_frames, parts.counters.xon_frames);
    EXPECT_EQ(whole.counters.pfc_pause_ps, parts.counters.pfc_pause_ps);
    EXPECT_EQ(whole.counters.general_hops, parts.counters.general_hops);
    const auto figures = [](const LinkTotals& link) {
      return std::tuple(link.sent, link.on_link, link.payload_bytes, link.wire_bytes, link.packets);
    };
    for (size_t link = 0; link < whole.links.size(); ++link) {
      EXPECT_EQ(figures(whole.links[link]), figures(parts.links[link])) << "link " << link;
    }
  }
};

// 3 x 40 packets of 4,178 B leave by one port: 83.56 ns each at 400 Gb/s.
TEST_F(BorderTest, WithoutPausesPacketsArriveAsInTheWholeNetwork) {
  Build();
  BufferSettings settings;
  settings.ecn_enabled = false;
  ExpectSame(settings, 40, 100'000'000);
  EXPECT_EQ(RunWhole(settings, 40, 100'000'000).seen.size(), 160u);
}

TEST_F(BorderTest, AnEndInTheMiddleHasTheSamePacketsOnLinks) {
  Build();
  BufferSettings settings;
  settings.ecn_enabled = false;
  for (const int64_t end_ps : {1'000, 125'000, 400'000, 1'234'567, 3'000'000}) {
    ExpectSame(settings, 40, end_ps);
  }
}

TEST_F(BorderTest, PauseFramesCrossAndStopPacketsThatHaveNotBegun) {
  Build();
  BufferSettings settings;
  settings.ecn_enabled = false;
  settings.buffer_bytes = 100'000;
  settings.alpha = 1;
  const Outcome whole = RunWhole(settings, 200, 200'000'000);
  EXPECT_GT(whole.counters.xoff_frames, 0u);
  ExpectSame(settings, 200, 200'000'000);
  for (const int64_t end_ps : {2'000'000, 5'000'000, 9'000'000}) ExpectSame(settings, 200, end_ps);
}

}  // namespace
}  // namespace railyard::testing
